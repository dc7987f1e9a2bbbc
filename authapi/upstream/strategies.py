"""The protocol of each strategy of a connection, in one table, so that pages and logouts need no knowledge of protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from authapi.failures.logins import LoginCase
from authapi.login.login import Login
from authapi.login.protocol import BrowserCall, RoundTrip
from authapi.upstream import login as oidc_login
from authapi.upstream import logout as oidc_logout
from authapi.upstream import provider as oidc_provider
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml import login as saml_login
from authapi.upstream.saml import logout as saml_logout
from authapi.upstream.saml import options as saml_options
from authapi.upstream.wsfed import login as wsfed_login
from authapi.upstream.wsfed import logout as wsfed_logout
from authapi.upstream.wsfed.options import is_wsfed
from identity.models import Connection

Kept = Mapping[str, Any]


@dataclass(frozen=True)
class ProviderLogout:
    """How a logout reaches the provider.

    One of the two members is set. In both cases, the browser goes to the provider after it has visited all clients.

    - `then` is the last request of the logout: the provider itself redirects the browser to the URL at which the logout ends.
    - `trip` makes a round trip: the browser comes back to this service with the provider's answer. The argument of `trip` is a handle,
      which the provider repeats in its answer.
    """

    then: BrowserCall | None = None
    trip: Callable[[str], RoundTrip] | None = None


@dataclass(frozen=True)
class Speaker:
    """One protocol. Each function may raise `UpstreamFailed`.

    `begin` returns the browser's request that begins a login. `log_out` returns how to end the login at the provider, or None if that is
    impossible. The arguments of `log_out` are the connection, the data that the session stores about the login, and the URL at which the
    logout ends.
    """

    begin: Callable[[Login, Connection], BrowserCall]
    log_out: Callable[[Connection, Kept, str], ProviderLogout | None]


def _oidc_begin(login: Login, connection: Connection) -> BrowserCall:
    return BrowserCall(oidc_login.begin(login, connection))


def _oidc_log_out(connection: Connection, kept: Kept, return_to: str) -> ProviderLogout | None:
    address = oidc_logout.end_session_address(connection, kept, return_to=return_to)
    return ProviderLogout(then=BrowserCall(address)) if address else None


def _saml_log_out(connection: Connection, kept: Kept, return_to: str) -> ProviderLogout | None:
    trip = saml_logout.round_trip_of(connection, kept)
    return ProviderLogout(trip=trip) if trip is not None else None


def _wsfed_log_out(connection: Connection, _kept: Kept, return_to: str) -> ProviderLogout | None:
    return ProviderLogout(then=wsfed_logout.sign_out_of(connection, return_to=return_to))


OIDC = Speaker(_oidc_begin, _oidc_log_out)
SAML = Speaker(saml_login.begin, _saml_log_out)
WSFED = Speaker(wsfed_login.begin, _wsfed_log_out)


def begin(login: Login, connection: Connection) -> BrowserCall:
    """Return the browser's request that begins a login through a connection. Raises `UpstreamFailed`."""
    speaker = speaker_of(connection)
    if speaker is None:
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"Users cannot log in through {connection.name}.")
    return speaker.begin(login, connection)


def speaker_of(connection: Connection) -> Speaker | None:
    """Return the protocol of a connection; None if users cannot log in through this connection."""
    if connection.strategy in saml_options.STRATEGIES:
        return SAML
    # Check this before OpenID Connect: a connection to Entra can use either protocol, and its options select WS-Federation.
    if is_wsfed(connection.strategy, connection.options):
        return WSFED
    return OIDC if connection.strategy in oidc_provider.STRATEGIES else None
