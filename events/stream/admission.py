"""Checks a request for a stream before the 200 response.

All checks run before the response, because a client whose stream ends directly after the opening reconnects again and again.

The caller has already checked host, tenant and method. The checks here are, in this order: draining of the process, token (for a user's
token, the client must be global), scope, rate, query, cursor, slot of the tenant, slot of the process, first page.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.conf import settings

from authapi.edge import throttling
from authapi.edge.address_rates import charged_debt
from authapi.edge.addresses import Origin, origin_of
from authapi.edge.throttling import Rate
from authapi.failures.requests import TOO_MANY_REQUESTS
from authapi.management_scopes import READ_EVENTS
from authapi.possession.holders import SCHEMES, NotHeld, asked_by, verified_async
from authapi.possession.presented import Asked
from authapi.tokens.verifying import InsufficientScope, TokenRefused, VerifiedToken, require_scope
from events.log.cursor import Cursor, InvalidCursor
from events.log.reading import Bounds, CursorExpired, LogError, NoLog
from events.record.catalogue import EVENT_TYPES
from events.stream.limits import Limits, limits_of
from events.stream.operating.leases import Lease, ProcessLimitReached, TenantLimitReached
from events.stream.reading.floor import expiry_notice, floor_headers
from events.stream.reading.pages import FramePage
from events.stream.reading.tail import READ_FAILURES
from events.stream.refusals import Header, Refused, gone, insufficient_scope, unauthorized, unavailable
from events.stream.request import InvalidQuery, Wanted, read_wanted
from events.stream.runtime import StreamRuntime
from events.stream.subscription import Subscription
from foundation.timestamps import wire_time
from identity.hosts import HostMatch

logger = logging.getLogger(__name__)

# The service counts requests for streams under this operation id.
ENDPOINT = "events"
# The first of the three headers about the rate limit. A response that has this header has all three.
RATE_HEADER = b"x-ratelimit-limit"
_TYPES = frozenset(EVENT_TYPES)
_RETRY_AFTER_SECONDS = (1, 5)
LIMIT_MESSAGE = "Maximum concurrent event stream connections reached, close existing connections."


@dataclass(frozen=True, slots=True)
class Admitted:
    """A subscription that passed every check, its slot, and the first page of its events."""

    subscription: Subscription
    lease: Lease
    first_page: FramePage | None
    headers: list[Header]


async def admit(scope: Mapping[str, Any], host: HostMatch, shared: StreamRuntime) -> Admitted:
    """Check a request and take a slot. Raises `Refused`. The caller must release the slot of the result."""
    if shared.is_draining:
        raise unavailable("The server is restarting.", retry_after_seconds=jittered_seconds())
    token, rate = await _charged(scope, host)
    try:
        require_scope(token, READ_EVENTS)
        if rate.is_exceeded:
            raise Refused(429, TOO_MANY_REQUESTS)
        wanted = wanted_of(scope)
        bounds, start = await placed(wanted, host.tenant_id, shared)
        limits = await _limits(host.tenant_id)
        lease = await _slot(host.tenant_id, limits, shared)
        try:
            first_page = await first_page_of(host.tenant_id, bounds, start, shared)
        except BaseException:
            shared.leases.release(lease)
            raise
    except InsufficientScope as error:
        raise rated(insufficient_scope(READ_EVENTS), rate) from error
    except Refused as refusal:
        raise rated(refusal, rate) from refusal.__cause__
    subscription = Subscription(
        tenant_id=host.tenant_id,
        client_id=token.client_id,
        client_version=token.client_version,
        jti=token.jti,
        expires_at=token.expires_at,
        start=start,
        bounds=bounds,
        types=wanted.types,
        not_before=wanted.moment,
        connection_id=lease.member,
        address=address_of(scope),
        notice=_notice(wanted, start, first_page, limits),
    )
    return Admitted(subscription, lease, first_page, wire_headers(rate) + floor_headers(bounds, shared.sealer(host.tenant_id)))


def wire_headers(rate: Rate) -> list[Header]:
    """Return the headers of the rate limit as ASGI headers."""
    return [(name.lower().encode(), value.encode()) for name, value in rate.headers.items()]


def rated(refusal: Refused, rate: Rate) -> Refused:
    """Return a refusal with the headers of the rate limit that counted the request."""
    refusal.headers += wire_headers(rate)
    return refusal


async def _charged(scope: Mapping[str, Any], host: HostMatch) -> tuple[VerifiedToken, Rate]:
    """Return the token and the rate of its tenant, and count the request. A request with a refused token counts against its IP address."""
    try:
        token = await _verified(scope, host)
    except Refused as refusal:
        if refusal.status != 401:
            raise
        debt = await charged_debt(host.tenant_id, origin_of_scope(scope))
        raise rated(Refused(429, TOO_MANY_REQUESTS) if debt.is_exceeded else refusal, debt) from refusal
    return token, await throttling.hit_async(host.tenant_id, ENDPOINT)


async def _verified(scope: Mapping[str, Any], host: HostMatch) -> VerifiedToken:
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    if not values:
        raise unauthorized("Missing authentication.", presented=False)
    scheme, _, token = values[0].decode("latin-1").partition(" ")
    if len(values) > 1 or scheme.lower() not in SCHEMES or not token.strip():
        raise unauthorized("Invalid token.", presented=True)
    try:
        return await verified_async(scheme.lower(), token.strip(), host=host, asked=partial(_asked, scope, host))
    except NotHeld as error:
        headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        raise Refused(401, error.message, code=error.error_code, headers=headers) from error
    except TokenRefused as error:
        raise unauthorized(error.message, presented=True) from error
    except READ_FAILURES as error:
        raise _unreadable(error) from error


def _asked(scope: Mapping[str, Any], host: HostMatch) -> Asked:
    return asked_by(scope["headers"], host=host, method=scope["method"], path=scope["path"])


def wanted_of(scope: Mapping[str, Any]) -> Wanted:
    """Return the parsed query and headers. Raises `Refused` with 400."""
    given = (value for name, value in scope["headers"] if name == b"last-event-id")
    try:
        return read_wanted(scope["query_string"], given, known_types=_TYPES)
    except InvalidQuery as error:
        raise Refused(400, str(error), code="invalid_query_string") from error


async def placed(wanted: Wanted, tenant_id: str, shared: StreamRuntime) -> tuple[Bounds, Cursor]:
    """Return the bounds of the log, and the cursor after which the stream starts.

    The stream starts after the cursor of the request, after the cursor directly before the requested time, or after the head.
    """
    try:
        cursor = shared.sealer(tenant_id).open(wanted.cursor) if wanted.cursor is not None else None
        if wanted.moment is not None:
            return await shared.log.start_at(tenant_id, wanted.moment)
        bounds = await shared.log.bounds(tenant_id)
        if cursor is None:
            return bounds, bounds.end
        if bounds.refutes(cursor):
            await shared.log.raise_epoch(tenant_id, cursor)
        bounds.require(cursor)
        return bounds, cursor
    except InvalidCursor as error:
        raise Refused(400, "Invalid cursor.", code="invalid_cursor") from error
    except CursorExpired as error:
        raise await _gone(tenant_id, shared) from error
    except NoLog as error:
        raise Refused(404, "The tenant has no event log.") from error
    except READ_FAILURES as error:
        raise _unreadable(error) from error


async def _limits(tenant_id: str) -> Limits:
    try:
        return await limits_of(tenant_id)
    except READ_FAILURES as error:
        raise _unreadable(error) from error


async def _slot(tenant_id: str, limits: Limits, shared: StreamRuntime) -> Lease:
    try:
        return await shared.leases.acquire(tenant_id, limit=limits.connections)
    except TenantLimitReached as error:
        raise Refused(403, LIMIT_MESSAGE, code="connection_limit") from error
    except ProcessLimitReached as error:
        raise unavailable("This server has reached its maximum number of open streams.", retry_after_seconds=jittered_seconds()) from error


async def first_page_of(tenant_id: str, bounds: Bounds, start: Cursor, shared: StreamRuntime) -> FramePage | None:
    """Return the first page after the start, or None if the start is the head. Raises `Refused`."""
    if start.position >= bounds.head:
        return None
    try:
        return await shared.sources.pages.after(tenant_id, start, shared.sealer(tenant_id))
    except CursorExpired as error:
        raise await _gone(tenant_id, shared) from error
    except (LogError, *READ_FAILURES) as error:
        raise _unreadable(error) from error


async def _gone(tenant_id: str, shared: StreamRuntime) -> Refused:
    # Read the earliest cursor now, because the epoch or the floor may have been raised since the bounds were read.
    try:
        earliest, recorded_at = await shared.log.earliest(tenant_id)
    except (NoLog, *READ_FAILURES) as error:
        return _unreadable(error)
    return gone(shared.sealer(tenant_id).seal(earliest), None if recorded_at is None else wire_time(recorded_at))


def _notice(wanted: Wanted, start: Cursor, page: FramePage | None, limits: Limits) -> bytes:
    # A client cannot see how old its cursor is, so the service warns a client whose cursor will soon expire. A client that sends a time
    # knows the age, and gets no warning.
    if wanted.cursor is None or page is None:
        return b""
    return expiry_notice(page.frame_after(start.position), limits.retention, now=datetime.now(UTC))


def origin_of_scope(scope: Mapping[str, Any]) -> Origin:
    """Return the IP address of the client, as reported by trusted proxies."""
    peer = (scope.get("client") or ("",))[0]
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    return origin_of(peer or "", forwarded.decode("latin-1"), settings.TRUSTED_PROXIES)


def address_of(scope: Mapping[str, Any]) -> str:
    """Return the `address` in the result of `origin_of_scope`."""
    return origin_of_scope(scope).address


def _unreadable(error: Exception) -> Refused:
    logger.warning("a stream was not opened: %s", type(error).__name__)
    return unavailable("The event log cannot be read right now.", retry_after_seconds=jittered_seconds())


def jittered_seconds() -> int:
    """Return a retry time in seconds with jitter."""
    return math.ceil(random.uniform(*_RETRY_AFTER_SECONDS))  # noqa: S311  (not a secret)
