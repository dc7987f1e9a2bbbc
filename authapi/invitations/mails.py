"""The mail of an invitation. No page and no response contains the link of this mail, so only a reader of the mailbox can open it."""

from __future__ import annotations

from django.utils import timezone

from authapi.invitations.links import mail_address
from authapi.models import Invitation
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.languages import spoken_language
from identity.messages.facts import organization_facts
from identity.messages.queue import queue_message
from identity.models import Role
from identity.services.failures import NotSupported

_KIND, _CHANNEL = "user_invitation", "email"


def start_mail(invitation: Invitation, *, address: str = "") -> None:
    """Give an invitation a new link and queue a mail with it. The link of an earlier mail becomes invalid.

    Call it in a transaction that has locked the row. Raises `NotSupported` for a tenant without a domain, and `MailNotConfigured`.
    """
    secret = new_secret()
    link = mail_address(invitation, secret, asked_at=address)
    if not link:
        raise NotSupported("The tenant has no verified domain for the link.")
    invitation.mail_digest, invitation.mailed_at = digest_of(secret), timezone.now()
    invitation.mail_count += 1
    invitation.save(update_fields=["mail_digest", "mailed_at", "mail_count", "updated_at"])
    roles = Role.objects.of(invitation.tenant_id).filter(pk__in=invitation.roles).order_by("name")
    client = invitation.client
    queue_message(
        tenant_id=invitation.tenant_id,
        kind=_KIND,
        channel=_CHANNEL,
        recipient=invitation.email,
        context={
            "url": link,
            "until": invitation.expires_at.isoformat(),
            "inviter": {"name": invitation.inviter_name},
            "organization": organization_facts(invitation.organization),
            "roles": list(roles.values_list("name", flat=True)),
        },
        language=spoken_language(invitation.tenant_id, wished=[invitation.language]),
        expires_at=invitation.expires_at,
        application={"name": client.name, "clientID": client.client_id, "client_metadata": client.metadata},
    )
