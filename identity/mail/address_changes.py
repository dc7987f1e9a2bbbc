"""Changes of a user's email address. The new address applies only after the user has opened the link in the mail and confirmed the change.

The verification of an address (`identity.mail.verification`) uses the same mail, ticket and page.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Value
from django.db.models.functions import Lower
from django.utils import timezone

from foundation.database.transactions import unit_of_work
from identity.languages import asked_language, language_for
from identity.messages.links import link_lifetime
from identity.models import EmailTicket, Job, User
from identity.services.jobs import send_after_commit
from identity.services.saving import validated_save

MAIL = "verify_email"


@unit_of_work
def start_address_change(*, user: User, email: str, client_id: str = "", address: str = "") -> EmailTicket | None:
    """Issue a link that sets this email address of the user, and queue its mail. Voids earlier links.

    The caller holds the lock of the user's row. Links use the default domain of the tenant, or the base URL `address` if the service uses
    plain http (`INSECURE_HTTP`). Returns None and sends no mail if another user of the connection has the email address; callers give the
    same response in both cases. Raises `Invalid`.
    """
    void_address_changes(user)
    if _is_taken(user, email):
        return None
    language = language_for(user, user.tenant_id, asked=asked_language())
    parameters = {"user_id": user.user_id, "client_id": client_id, "address": address, "language": language}
    job = Job(
        tenant_id=user.tenant_id,
        type=Job.Type.VERIFICATION_EMAIL,
        connection=user.connection,
        parameters={name: value for name, value in parameters.items() if value},
        # This function creates the ticket, so only the mail is left for the job.
        has_effect_due=True,
    )
    validated_save(job)
    life = link_lifetime(user.tenant_id, MAIL) or timedelta(days=settings.EMAIL_TICKET_DAYS)
    ticket = EmailTicket(
        tenant_id=user.tenant_id,
        user=user,
        job=job,
        email=email,
        former_email=user.email or "",
        language=language,
        expires_at=timezone.now() + life,
    )
    validated_save(ticket)
    send_after_commit(job)
    return ticket


def void_address_changes(user: User) -> None:
    """Void all open links that would change the user's address. Call it with the user's row locked."""
    open_links = EmailTicket.objects.of(user.tenant_id).filter(user=user, former_email__isnull=False, used_at__isnull=True)
    open_links.update(used_at=timezone.now())


def _is_taken(user: User, email: str) -> bool:
    others = User.objects.of(user.tenant_id).filter(connection_id=user.connection_id).exclude(pk=user.pk)
    return others.annotate(lower_email=Lower("email")).filter(lower_email=Lower(Value(email))).exists()
