"""Device codes (RFC 8628): issued to a device, answered by a user in a browser, exchanged once by the device. Rows store digests only.

The tokens of a device do not end with the browser session in which the user allowed the device: after a logout in the
browser, the device stays logged in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from authapi.clients.user_codes import UserCodeForm, user_code_digest, user_code_digests
from authapi.edge.addresses import stored_address
from authapi.failures import RequestRefused
from authapi.failures.device import DeviceCase
from authapi.failures.requests import RequestCase
from authapi.models import Client, DeviceGrant, Session
from authapi.tokens.asked import Asked
from authapi.tokens.refresh_tokens import Sender
from foundation.database.transactions import unit_of_work
from foundation.json_values import storable
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.models import Organization

# RFC 8628, 3.2 and 3.5.
INTERVAL = 5
_LONGER = 5
# Maximum of the required interval, in seconds. A client that misses a `slow_down` answer keeps polling too early, and each early poll makes
# the required interval longer.
_LONGEST_INTERVAL = 60
# A device may send two polls with the required interval, and they may arrive with a shorter interval. A difference of up to this time is
# tolerated.
_JITTER = timedelta(seconds=1)
_DRAWS = 5
_LONGEST_AGENT = 500


@dataclass(frozen=True)
class DeviceRequest:
    """A checked request of a client, and the IP address of the device."""

    client: Client
    scope: str
    audience: str
    sender: Sender
    country: str = ""
    # The key to which the tokens must be bound, if the request had a DPoP proof.
    confirmation: Mapping[str, Any] | None = None
    details: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class DeviceCodes:
    """The answer to the client: the device code, the user code, and their lifetime in seconds."""

    device_code: str = field(repr=False)
    user_code: str = field(repr=False)
    seconds: int
    interval: int


@dataclass(frozen=True)
class Approval:
    """The approval of a user for a device, given in the session of a browser."""

    session: Session
    audience: str
    scopes: Iterable[str]
    organization: Organization | None
    ip: str


def issue_device_codes(asked: DeviceRequest, form: UserCodeForm) -> DeviceCodes:
    """Store a request and return its codes. Raises `RequestRefused` if every generated user code belongs to another device."""
    seconds = settings.DEVICE_CODE_SECONDS
    client = asked.client
    row = DeviceGrant(
        tenant_id=client.tenant_id,
        application=client,
        client_id=client.client_id,
        scope=asked.scope,
        audience=asked.audience,
        interval=INTERVAL,
        confirmation=dict(asked.confirmation) if asked.confirmation else None,
        asked=Asked(asked.details).state if asked.details else None,
        initial_ip=stored_address(asked.sender.ip),
        initial_country=asked.country,
        initial_user_agent=storable(asked.sender.user_agent)[:_LONGEST_AGENT],
    )
    device_code = new_secret()
    row.device_code, row.expires = digest_of(device_code), timezone.now() + timedelta(seconds=seconds)
    return DeviceCodes(device_code, _kept_with_user_code(row, form), seconds, INTERVAL)


def device_of(tenant_id: str, typed: str) -> DeviceGrant | None:
    """Return the row of a user code, even if it is used or expired; None for an unknown code."""
    rows = DeviceGrant.objects.of(tenant_id).select_related("application")
    return rows.filter(user_code__in=user_code_digests(tenant_id, typed)).first()


def device_with_key(tenant_id: str, key: int) -> DeviceGrant | None:
    """Return the row of a device by its primary key; None if the row no longer exists."""
    return DeviceGrant.objects.of(tenant_id).filter(pk=key).first()


def locked_device(tenant_id: str, device_code: str) -> DeviceGrant | None:
    """Return the row of a device code with its related rows, locked until the transaction ends; None for an unknown code."""
    rows = DeviceGrant.objects.of(tenant_id).select_related("user__connection", "organization")
    return rows.select_for_update(of=("self",), no_key=True).filter(device_code=digest_of(device_code)).first()


def why_over(row: DeviceGrant, *, now: datetime) -> DeviceCase | None:
    """Return why users can no longer answer; None if an answer is still possible."""
    if row.status not in (DeviceGrant.AUTHORIZATION_PENDING, DeviceGrant.EXPIRED):
        return DeviceCase.CODE_OVER
    return DeviceCase.CODE_EXPIRED if row.status == DeviceGrant.EXPIRED or row.expires <= now else None


def why_waiting(row: DeviceGrant, *, now: datetime) -> DeviceCase | None:
    """Return why the device gets no tokens; None if a user has allowed the device. Stores the poll. The caller must have locked the row.

    The expiry is reported once (contract, 2.11): later polls get the same answer as an unknown device code.
    """
    if row.status == DeviceGrant.DENIED:
        return DeviceCase.DENIED
    if row.status == DeviceGrant.EXPIRED:
        return DeviceCase.INVALID_CODE
    if row.expires <= now:
        row.status = DeviceGrant.EXPIRED
        row.save(update_fields=["status"])
        return DeviceCase.EXPIRED
    if row.status == DeviceGrant.AUTHORIZED:
        return None
    before, row.last_checked = row.last_checked, now
    is_early = before is not None and now - before < timedelta(seconds=row.interval) - _JITTER
    if is_early:
        row.interval = min(row.interval + _LONGER, _LONGEST_INTERVAL)
    row.save(update_fields=["last_checked", "interval"])
    return DeviceCase.SLOW_DOWN if is_early else DeviceCase.PENDING


@unit_of_work
def approve_device(tenant_id: str, key: int, approval: Approval) -> None:
    """Grant a device its tokens. Raises `RequestRefused` if a user has answered before, or if the code has expired.

    If the same user sends the same answer again, the repetition has no effect. A password change ends the session, and then revokes the
    approvals of the user (`take_back_approvals`). The session is locked here, so that a concurrent password change finds this approval.
    """
    row, session = _locked(tenant_id, key), approval.session
    if row.status == DeviceGrant.AUTHORIZED and row.user_id == session.user_id:
        return
    _require_open(row)
    if not Session.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=session.pk).exists():
        raise RequestRefused(DeviceCase.CODE_OVER)
    row.status, row.user, row.organization = DeviceGrant.AUTHORIZED, session.user, approval.organization
    row.audience, row.scope = approval.audience, " ".join(approval.scopes)
    row.auth_time, row.methods = session.authenticated_at, list(session.methods)
    row.approved_ip = stored_address(approval.ip)
    row.save(
        update_fields=["status", "user", "organization", "audience", "scope", "auth_time", "methods", "approved_ip"],
    )


@unit_of_work
def deny_device(tenant_id: str, key: int) -> None:
    """Store that a user has denied the device its tokens. Raises `RequestRefused` in the same cases as `approve_device`."""
    row = _locked(tenant_id, key)
    _require_open(row)
    row.status = DeviceGrant.DENIED
    row.save(update_fields=["status"])


def take_back_approvals(*, tenant_id: str, user_id: int) -> None:
    """Revoke the user's approvals that no device has exchanged yet. Call this function when an account changes, after its sessions have
    ended."""
    waiting = DeviceGrant.objects.of(tenant_id).filter(user_id=user_id, status=DeviceGrant.AUTHORIZED, used_at=None)
    waiting.update(status=DeviceGrant.DENIED)


def _kept_with_user_code(row: DeviceGrant, form: UserCodeForm) -> str:
    """Save the row with a user code that no other row has; return the code."""
    for _ in range(_DRAWS):
        code = form.new_code()
        if device_of(row.tenant_id, code) is not None:
            continue
        row.user_code = user_code_digest(row.tenant_id, code)
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError:
            # A concurrent request has stored the same code.
            row.pk = None
            continue
        return code
    raise RequestRefused(RequestCase.UNAVAILABLE)


def _locked(tenant_id: str, key: int) -> DeviceGrant:
    row = DeviceGrant.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=key).first()
    if row is None:
        raise RequestRefused(DeviceCase.CODE_EXPIRED)
    return row


def _require_open(row: DeviceGrant) -> None:
    over = why_over(row, now=timezone.now())
    if over is not None:
        raise RequestRefused(over)
