"""The mail of an invitation. It is the only place that ever holds the link which proves the mailbox."""

from __future__ import annotations

from django.utils import timezone, translation

from authapi.invitations.links import mail_address
from authapi.models import Invitation
from authapi.tenant_settings import sign_in_settings
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.mail.retries import pause_of
from identity.mail.sending import MailServerAway, send_mail
from identity.models import Job
from identity.services.failures import NotSupported
from identity.services.jobs import Pause, effect_of, send_after_commit, step_of
from identity.services.saving import validated_save

_TEMPLATE = "user_invitation"
_LINK = "sealed_link"


def start_mail(invitation: Invitation, *, address: str = "") -> None:
    """Give an invitation a new link and let a worker mail it; the link of an earlier mail is worth nothing from then on.

    Belongs into the transaction of the caller, who has locked the row. Raises `NotSupported` for a tenant without a domain.
    """
    secret = new_secret()
    link = mail_address(invitation, secret, asked_at=address)
    if not link:
        raise NotSupported("The tenant has no verified domain to which a link could point.")
    invitation.mail_digest, invitation.mailed_at = digest_of(secret), timezone.now()
    invitation.mail_count += 1
    invitation.save(update_fields=["mail_digest", "mailed_at", "mail_count", "updated_at"])
    job = Job(tenant_id=invitation.tenant_id, type=Job.Type.INVITATION_EMAIL)
    job.parameters = {"invitation": invitation.pk, _LINK: vault.seal(link, place=_place(job))}
    validated_save(job)
    send_after_commit(job)


@step_of(Job.Type.INVITATION_EMAIL)
def find_invitation(job: Job) -> bool:
    """Ask for the mail of an invitation that is open still."""
    if "asked" in job.summary or _open(job) is None:
        return False
    job.summary["asked"] = True
    job.has_effect_due = True
    return True


@effect_of(Job.Type.INVITATION_EMAIL)
def mail_invitation(job: Job) -> Pause | None:
    """Send the mail, unless the invitation has ended or a later mail was asked for; then forget the link."""
    invitation, sealed = _open(job), job.parameters.get(_LINK, "")
    if invitation is not None and sealed:
        link = vault.unseal(sealed, place=_place(job))
        if invitation.mail_digest == digest_of(link.rpartition("=")[2]):
            try:
                _send(invitation, link)
            except MailServerAway:
                return pause_of(job)
    job.parameters = {"invitation": job.parameters.get("invitation", "")}
    job.save(update_fields=["parameters", "updated_at"])
    return None


def _send(invitation: Invitation, link: str) -> None:
    settings, organization = sign_in_settings(invitation.tenant_id), invitation.organization
    context = {
        "tenant": settings.friendly_name,
        "inviter": invitation.inviter_name,
        "organization": organization.display_name or organization.name,
        "application": invitation.client.name,
        "invitation": invitation,
        "link": link,
    }
    with translation.override(invitation.language or next(iter(settings.enabled_locales), "en")):
        send_mail(_TEMPLATE, to=[invitation.email], context=context)


def _open(job: Job) -> Invitation | None:
    rows = Invitation.objects.of(job.tenant_id).select_related("client", "organization")
    invitation = rows.filter(pk=job.parameters.get("invitation", "")).first()
    is_open = invitation is not None and invitation.state_at(timezone.now()) is Invitation.State.PENDING
    return invitation if is_open else None


def _place(job: Job) -> str:
    return f"{job.tenant_id}:job:{job.pk}:link"
