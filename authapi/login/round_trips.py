"""Logouts that need the browser: the browser visits each participant of the ended session, and then the target of the logout.

A sealed row stores the remaining visits. Each participant sends the browser back with the handle of that row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login.browser import post_form, see_other, with_parameters
from authapi.login.protocol import BrowserCall, RoundTrip
from authapi.login.sessions import end_session
from authapi.models import LogoutTransaction, Session
from foundation.database.transactions import lock_rows, unit_of_work
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.hosts import HostMatch

# Path at which a logout continues after the page with frames, or after a participant whose protocol defines no logout response.
NEXT_PATH = "/u/logout/next"
# Path of the page with frames. Each frame loads a URL of a participant, which notifies the participant of the logout.
FRAMES_PATH = "/u/logout/frames"
_ADDRESSES = "addresses"
_LONGEST_HANDLE = 64


@dataclass(frozen=True)
class _Route:
    """The visits that remain in a logout. The browser is at the first visit. At the end, the browser is sent to `then`, or to `otherwise`
    if a participant did not end its session."""

    round_trips: tuple[RoundTrip, ...]
    then: BrowserCall
    otherwise: BrowserCall


@unit_of_work
def begin(
    session: Session,
    *,
    reason: str,
    then: BrowserCall,
    otherwise: BrowserCall | None = None,
    last: Callable[[str], RoundTrip] | None = None,
) -> BrowserCall | None:
    """End a session. Return the browser's visit to the first participant, or None if the browser must visit no participant.

    After the last participant the browser is sent to `then`, or to `otherwise` if a participant did not end its session. `last` creates one
    more visit, to the provider at which the session began; the argument of `last` is the handle that the provider's answer returns.
    """
    handle = new_secret()
    visits = _on_one_page(end_session(session, reason=reason, browser_handle=handle), handle)
    round_trips = [*visits, *([last(handle)] if last is not None else [])]
    if not round_trips:
        return None
    row = LogoutTransaction(tenant_id=session.tenant_id, digest=digest_of(handle))
    row.sealed_route = _sealed(row, _Route(tuple(round_trips), then, otherwise or then))
    row.expires_at = timezone.now() + timedelta(seconds=settings.AUTHORIZATION_REQUEST_SECONDS)
    row.save(force_insert=True)
    return round_trips[0].call


def expected(host: HostMatch, handle: str) -> RoundTrip:
    """Return the participant that the browser is visiting, so that its answer can be checked.

    Raises `RequestRefused` if the browser visits no participant.
    """
    row = _found(host, handle)
    return _unsealed(row).round_trips[0]


def in_frames(handle: str, addresses: Iterable[str]) -> RoundTrip:
    """Return the browser's visit to the page that loads these URLs of participants in frames."""
    return RoundTrip("", BrowserCall(with_parameters(FRAMES_PATH, {"state": handle})), {_ADDRESSES: list(addresses)})


def framed_addresses(host: HostMatch, handle: str) -> tuple[str, ...]:
    """Return the URLs that the page loads in frames. Raises `RequestRefused` if the browser is not at that page."""
    addresses = tuple(str(address) for address in expected(host, handle).state.get(_ADDRESSES) or ())
    if not addresses:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    return addresses


def go_on(http_request: HttpRequest, host: HostMatch, handle: str, *, is_told: bool) -> HttpResponse:
    """Redirect the browser to the next visit, after it has come back from a participant. `is_told`: the participant has ended its session.

    Raises `RequestRefused` for an unknown handle.
    """
    return send(http_request, _next_call(host, handle, is_told=is_told))


def send(http_request: HttpRequest, call: BrowserCall) -> HttpResponse:
    """Send the browser to a URL: by a redirect, or with a form that posts itself."""
    answer = post_form(http_request, call.address, call.fields) if call.fields else see_other(http_request, call.address)
    answer["Cache-Control"] = "no-store"
    return answer


def _on_one_page(visits: Sequence[RoundTrip], handle: str) -> list[RoundTrip]:
    """Put the frames of all protocols on one page, before the participants that are visited one after another."""
    framed = [address for visit in visits for address in visit.state.get(_ADDRESSES) or ()]
    others = [visit for visit in visits if _ADDRESSES not in visit.state]
    return [in_frames(handle, framed), *others] if framed else others


@unit_of_work
def _next_call(host: HostMatch, handle: str, *, is_told: bool) -> BrowserCall:
    lock_rows(LogoutTransaction, [_found(host, handle).pk])
    # Read the row again under the lock: a concurrent request may have changed it.
    row = _found(host, handle)
    route = _unsealed(row)
    rest = replace(route, round_trips=route.round_trips[1:], then=route.then if is_told else route.otherwise)
    if not rest.round_trips:
        row.delete()
        return rest.then
    row.sealed_route = _sealed(row, rest)
    row.save(update_fields=["sealed_route"])
    return rest.round_trips[0].call


def _found(host: HostMatch, handle: str) -> LogoutTransaction:
    rows = LogoutTransaction.objects.of(host.tenant_id).filter(expires_at__gt=timezone.now())
    row = rows.filter(digest=digest_of(handle)).first() if 0 < len(handle) <= _LONGEST_HANDLE else None
    if row is None:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    return row


def _sealed(row: LogoutTransaction, route: _Route) -> str:
    return vault.seal(orjson.dumps(asdict(route)).decode(), place=_place(row))


def _unsealed(row: LogoutTransaction) -> _Route:
    kept: dict[str, Any] = orjson.loads(vault.unseal(row.sealed_route, place=_place(row)))
    return _Route(_round_trips(kept["round_trips"]), BrowserCall(**kept["then"]), BrowserCall(**kept["otherwise"]))


def _round_trips(kept: Sequence[dict[str, Any]]) -> tuple[RoundTrip, ...]:
    return tuple(RoundTrip(one["client_id"], BrowserCall(**one["call"]), one["state"]) for one in kept)


def _place(row: LogoutTransaction) -> str:
    return f"{row.tenant_id}:logout_transaction:{row.digest}:route"
