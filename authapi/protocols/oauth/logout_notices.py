"""Notices to clients that a session has ended (OpenID Connect Back-Channel Logout 1.0).

A notice is a row that is written in the transaction which ends the session. A message wakes a worker after the commit. If the message is
lost, the scheduled task sends the notice, because the row stays due.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from authapi.models import Client, Initiator, LogoutNotice, Session
from authapi.services import sign_in_log
from foundation.database.transactions import after_commit, lock_rows, unit_of_work
from foundation.hooks import work_waits
from identity.hosts import canonical_address
from identity.stopped_tenants import of_running_tenants

SEND_NOTICE = "authapi.send_logout_notice"
# A client that registers a URL gets notices of logouts with these initiators. For other initiators, the client must opt in.
_ALWAYS = frozenset({Initiator.RP_LOGOUT, Initiator.IDP_LOGOUT})
# How long the claim of a notice is valid. This time is longer than an attempt can take. If a worker crashes during an attempt, another
# worker sends the notice after this time.
_LEASE = timedelta(seconds=30)


@dataclass(frozen=True)
class Claim:
    """One attempt to send a notice, with the client's current settings."""

    notice: LogoutNotice
    client: Client


def leave_notices(session: Session, clients: Iterable[Client], *, reason: str) -> None:
    """Write a notice for each URL at which a client requests notices for `reason`. Call it inside the transaction that ends the session.

    Raises `ValueError` for a reason that is not an `Initiator`.
    """
    reason = Initiator(reason).value
    now = timezone.now()
    issuer = session.issuer or f"{canonical_address(session.tenant_id)}/"
    notices = [
        LogoutNotice(
            tenant_id=session.tenant_id, client=client, url=url, initiator=reason, sid=session.pk, subject=session.user.user_id,
            issuer=issuer, due_at=now,
        )
        for client in clients
        if client.revoked_at is None
        for url in logout_addresses(client, reason)
    ]  # fmt: skip
    for notice in LogoutNotice.objects.of(session.tenant_id).bulk_create(notices):
        after_commit(work_waits.send, sender=LogoutNotice, task=SEND_NOTICE, arguments=(str(notice.pk),))


def logout_addresses(client: Client, reason: str) -> tuple[str, ...]:
    """Return the URLs at which the client requests notices of logouts for this reason; empty if it requests none."""
    wanted: dict[str, Any] = client.settings.get("oidc_logout") or {}
    initiators: dict[str, Any] = wanted.get("backchannel_logout_initiators") or {}
    is_told = reason in _ALWAYS or initiators.get("mode") == "all" or reason in (initiators.get("selected_initiators") or ())
    return tuple(wanted.get("backchannel_logout_urls") or ()) if is_told else ()


@unit_of_work
def claim_notice(notice_id: int) -> Claim | None:
    """Claim a due notice for one attempt. Return None if the notice was sent or given up, or if another worker has claimed it."""
    lock_rows(LogoutNotice, [notice_id])
    # The message to the worker contains only the id of the notice, so the row is searched in all tenants.
    due = of_running_tenants(LogoutNotice.all_tenants.filter(pk=notice_id, due_at__lte=timezone.now()))
    notice = due.select_related("client").first()
    if notice is None:
        return None
    notice.attempts += 1
    notice.due_at = timezone.now() + _LEASE
    notice.save(update_fields=["attempts", "due_at"])
    return Claim(notice, notice.client)


def settle_notice(notice: LogoutNotice) -> None:
    """Delete the notice: the client has received it."""
    notice.delete()


@unit_of_work
def fail_notice(notice: LogoutNotice, *, why: str, is_final: bool = False) -> None:
    """Postpone the notice to its next attempt, or give it up and write a line to the sign-in log."""
    delays = settings.LOGOUT_RETRY_DELAYS
    if not is_final and notice.attempts <= len(delays):
        notice.due_at = timezone.now() + timedelta(seconds=delays[notice.attempts - 1])
        notice.save(update_fields=["due_at"])
        return
    sign_in_log.note(
        tenant_id=notice.tenant_id,
        type="flo",
        is_success=False,
        description=f"The client was not notified of the logout: {why}",
        client=notice.client,
        details={"initiator": notice.initiator, "session_id": notice.sid, "attempts": notice.attempts},
    )
    notice.delete()


def due_notices(*, limit: int = 1000) -> list[int]:
    """Return the ids of the due notices of all tenants."""
    due = of_running_tenants(LogoutNotice.all_tenants.filter(due_at__lte=timezone.now())).order_by("due_at")
    return list(due.values_list("pk", flat=True)[:limit])
