"""Requests that a user approves elsewhere (OpenID CIBA Core 1.0).

A client begins a request, the user answers the request in a browser, and the client exchanges the request for tokens once. Rows store
only the digests of the id that the client polls with, and of the secret in the link that the user opens. The granted tokens are not tied
to the session in which the user approved: the tokens stay valid when the user logs out of that browser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from authapi.edge.addresses import stored_address
from authapi.failures import RequestRefused
from authapi.failures.ciba import CibaCase
from authapi.models import CibaRequest, Client, Session
from authapi.tokens.asked import Asked
from foundation.database.transactions import unit_of_work
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.models import Organization, User

# CIBA 7.3; contract, 2.11.
INTERVAL = 5
_LONGER = 5
# Maximum of the required interval, in seconds. A client that misses a `slow_down` answer keeps polling too early, and each early poll makes
# the required interval longer.
_LONGEST_INTERVAL = 60
# If a client sends two polls with the required interval, they may arrive with a shorter interval. A difference of this size is tolerated.
_JITTER = timedelta(seconds=1)


@dataclass(frozen=True)
class Wanted:
    """A checked request of a client, and the IP address that it came from."""

    client: Client
    user: User
    scope: str
    audience: str
    binding_message: str
    seconds: int
    channel: str
    ip: str
    country: str = ""
    acr_values: str = ""
    # The key to which the tokens must be bound, if the request had a DPoP proof.
    confirmation: Mapping[str, Any] | None = None
    details: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Begun:
    """The row of a request, its lifetime in seconds, the id that the client polls with, and the secret of the link."""

    row: CibaRequest
    seconds: int
    auth_req_id: str = field(repr=False)
    link: str = field(repr=False)


@dataclass(frozen=True)
class Approval:
    """The approval of a user, given in the session of a browser. `acr` is the context that the login has met, or empty."""

    session: Session
    audience: str
    scopes: Iterable[str]
    organization: Organization | None
    ip: str
    acr: str = ""


def begin_request(wanted: Wanted) -> Begun:
    """Store a request. Return its row, and the secrets; the row contains only digests of the secrets."""
    auth_req_id, link = new_secret(), new_secret()
    row = CibaRequest(
        tenant_id=wanted.client.tenant_id,
        application=wanted.client,
        user=wanted.user,
        auth_req_id=digest_of(auth_req_id),
        link_digest=digest_of(link),
        scope=wanted.scope,
        audience=wanted.audience,
        acr_values=wanted.acr_values,
        binding_message=wanted.binding_message,
        channel=wanted.channel,
        interval=INTERVAL,
        confirmation=dict(wanted.confirmation) if wanted.confirmation else None,
        asked=Asked(wanted.details).state if wanted.details else None,
        initial_ip=stored_address(wanted.ip),
        initial_country=wanted.country,
        expires=timezone.now() + timedelta(seconds=wanted.seconds),
    )
    row.save(force_insert=True)
    return Begun(row, wanted.seconds, auth_req_id, link)


def waiting_count(tenant_id: str, *, most: int, **owner: Any) -> int:
    """Return how many requests of a user or of a client wait for an answer, counted up to `most`."""
    rows = CibaRequest.objects.of(tenant_id).filter(**owner, status=CibaRequest.Status.PENDING, expires__gt=timezone.now())
    return len(rows.values_list("pk")[:most])


def request_of_link(tenant_id: str, link: str) -> CibaRequest | None:
    """Return the row of a link, even if it is answered or expired; None for an unknown link."""
    rows = CibaRequest.objects.of(tenant_id).select_related("application", "user")
    return rows.filter(link_digest=digest_of(link)).first() if link else None


def request_with_key(tenant_id: str, key: int) -> CibaRequest | None:
    """Return the row of a request by its primary key; None if the row no longer exists."""
    return CibaRequest.objects.of(tenant_id).select_related("user").filter(pk=key).first()


def locked_request(tenant_id: str, auth_req_id: str) -> CibaRequest | None:
    """Return the row of an id with its related rows, locked until the transaction ends; None for an unknown id."""
    rows = CibaRequest.objects.of(tenant_id).select_related("user__connection", "organization")
    return rows.select_for_update(of=("self",), no_key=True).filter(auth_req_id=digest_of(auth_req_id)).first()


def why_over(row: CibaRequest, *, now: datetime) -> CibaCase | None:
    """Return why the user can no longer answer; None if an answer is still possible."""
    if row.status != CibaRequest.Status.PENDING:
        return CibaCase.REQUEST_OVER
    return CibaCase.REQUEST_EXPIRED if row.expires <= now else None


def why_waiting(row: CibaRequest, *, now: datetime) -> CibaCase | None:
    """Return why the client gets no tokens; None if the user has approved. Records the poll. The caller holds the lock of the row."""
    if row.status == CibaRequest.Status.DENIED:
        return CibaCase.DENIED
    if row.expires <= now:
        return CibaCase.EXPIRED
    if row.status == CibaRequest.Status.APPROVED:
        return None
    before, row.last_checked = row.last_checked, now
    is_early = before is not None and now - before < timedelta(seconds=row.interval) - _JITTER
    if is_early:
        row.interval = min(row.interval + _LONGER, _LONGEST_INTERVAL)
    row.save(update_fields=["last_checked", "interval"])
    return CibaCase.SLOW_DOWN if is_early else CibaCase.PENDING


@unit_of_work
def approve_request(tenant_id: str, key: int, approval: Approval) -> None:
    """Grant the client its tokens. Raises `RequestRefused` for another user, and if the request is answered or expired.

    A second approval of the same request has no effect. A password change ends the session, and then revokes the approvals of
    the user (`take_back_approvals`). The session is locked here, so that a concurrent password change finds this approval.
    """
    session = approval.session
    row = _locked(tenant_id, key, session.user)
    if row.status == CibaRequest.Status.APPROVED:
        return
    _require_open(row)
    if not Session.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=session.pk).exists():
        raise RequestRefused(CibaCase.REQUEST_OVER)
    row.status, row.organization = CibaRequest.Status.APPROVED, approval.organization
    row.audience, row.scope = approval.audience, " ".join(approval.scopes)
    row.auth_time, row.methods = session.authenticated_at, list(session.methods)
    row.approved_ip = stored_address(approval.ip)
    if approval.acr:
        row.asked = {**(row.asked or {}), "acr": approval.acr}
    row.save(update_fields=["status", "organization", "audience", "scope", "auth_time", "methods", "approved_ip", "asked"])


@unit_of_work
def deny_request(tenant_id: str, key: int, user: User) -> None:
    """Record that the user has denied the request. Raises `RequestRefused` for another user, and if the request is answered or expired."""
    row = _locked(tenant_id, key, user)
    _require_open(row)
    row.status = CibaRequest.Status.DENIED
    row.save(update_fields=["status"])


def take_back_approvals(*, tenant_id: str, user_id: int) -> None:
    """Revoke the approvals that a user has given and that no client has exchanged yet. Call it when an account changes, after its sessions
    have ended."""
    rows = CibaRequest.objects.of(tenant_id).filter(user_id=user_id, status=CibaRequest.Status.APPROVED, used_at=None)
    rows.update(status=CibaRequest.Status.DENIED)


def _locked(tenant_id: str, key: int, user: User) -> CibaRequest:
    row = CibaRequest.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=key).first()
    if row is None:
        raise RequestRefused(CibaCase.REQUEST_EXPIRED)
    if row.user_id != user.pk:
        raise RequestRefused(CibaCase.OTHER_USER)
    return row


def _require_open(row: CibaRequest) -> None:
    over = why_over(row, now=timezone.now())
    if over is not None:
        raise RequestRefused(over)
