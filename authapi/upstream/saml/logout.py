"""Logouts between this service and a SAML provider, in both directions (SAML Profiles 2.0, 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from django.utils import timezone

from authapi.login.protocol import BrowserCall, RoundTrip
from authapi.login.sessions import upstream_of
from authapi.models import Session
from authapi.upstream.people import known_user
from authapi.upstream.saml.calls import call_of
from authapi.upstream.saml.claims import NameId
from authapi.upstream.saml.connections import keys_of, options_of, saml_provider, signer_of
from authapi.upstream.saml.logouts import LogoutDemand, Sent, check_logout_answer, logout_demand
from authapi.upstream.saml.requests import logout_request, logout_response
from authapi.xml.bindings import REQUEST, RESPONSE
from foundation.secrets.random_secrets import new_secret
from identity.models import Connection

LOGOUT_PATH = "logout"
# The maximum number of a user's sessions that are searched when the provider ends a login.
_MOST_SESSIONS = 200
# The maximum number of sessions of all users that are searched, if the name in a logout request does not identify a user.
_MOST_SEARCHED = 5_000


def addresses_of(base: str, connection: str) -> frozenset[str]:
    """Return the addresses to which a provider may send logout messages; `base` is the issuer of the host."""
    return frozenset((logout_address(base, connection), f"{base}{LOGOUT_PATH}"))


def logout_address(base: str, connection: str) -> str:
    return f"{base}{LOGOUT_PATH}?connection={connection}"


def round_trip_of(connection: Connection, kept: Mapping[str, Any]) -> Callable[[str], RoundTrip] | None:
    """Return the function that makes the round trip of the browser to the provider.

    None if the provider has no logout address, or if the login had no NameID.

    Raises `UpstreamFailed`.
    """
    provider = saml_provider(connection)
    named = kept.get("name_id")
    if provider.sign_out is None or not named:
        return None
    endpoint, name_id = provider.sign_out, NameId(*named)
    # Logout requests must be signed (SAML Profiles 2.0, 4.4.3.1).
    signer = signer_of(connection, provider.options)

    def trip(handle: str) -> RoundTrip:
        request_id = f"_{new_secret()}"
        message = logout_request(
            provider,
            destination=endpoint.address,
            request_id=request_id,
            name_id=name_id,
            session_index=str(kept.get("session_index") or ""),
            now=timezone.now(),
        )
        call = call_of(endpoint, REQUEST, message, handle, signer)
        return RoundTrip("", call, {"connection": connection.pk, "request_id": request_id})

    return trip


def check_answer(connection: Connection, sent: Sent, *, base: str, request_id: str) -> None:
    """Check the provider's answer to a request of this service. Raises `UpstreamFailed`, also if the provider could not end the login."""
    check_logout_answer(sent, saml_provider(connection), addresses=addresses_of(base, connection.name), request_id=request_id)


def demand_of(connection: Connection, sent: Sent, *, base: str) -> LogoutDemand:
    """Return a verified logout request of the provider. Raises `UpstreamFailed`."""
    provider = saml_provider(connection)
    return logout_demand(sent, provider, addresses=addresses_of(base, connection.name), keys=keys_of(connection), now=timezone.now())


def demanded_sessions(connection: Connection, demand: LogoutDemand) -> list[Session]:
    """Return the sessions that a logout request is to end, newest first. Raises `UpstreamFailed`."""
    rows = Session.objects.of(connection.tenant_id).filter(connection=connection).exclude(sealed_upstream="")
    rows = rows.select_related("user", "connection").order_by("-created_at")
    subject = demand.name_id.value
    options = options_of(connection)
    is_mapped = options.user_id_attributes or "user_id" in dict(options.fields)
    user = None if is_mapped else known_user(connection, subject)
    found = []
    # For a known user, search that user's sessions only: sessions of other users must not use up the limit.
    for session in rows[:_MOST_SEARCHED] if user is None else rows.filter(user=user)[:_MOST_SESSIONS]:
        kept = orjson.loads(upstream_of(session) or "{}")
        named = kept.get("name_id") or [""]
        if named[0] == subject and (not demand.session_indexes or kept.get("session_index") in demand.session_indexes):
            found.append(session)
    return found


def answers_to(connection: Connection, demand: LogoutDemand, *, relay_state: str) -> tuple[BrowserCall, BrowserCall] | None:
    """Return two browser requests with the answer of this service: one for full success and one for partial success.

    None if the provider has no address for answers.

    Raises `UpstreamFailed`.
    """
    provider = saml_provider(connection)
    endpoint = provider.sign_out_answer
    if endpoint is None:
        return None
    signer = signer_of(connection, provider.options)

    def answer(*, is_complete: bool) -> BrowserCall:
        message = logout_response(
            provider,
            destination=endpoint.address,
            response_id=f"_{new_secret()}",
            in_response_to=demand.id,
            now=timezone.now(),
            is_complete=is_complete,
        )
        return call_of(endpoint, RESPONSE, message, relay_state, signer)

    return answer(is_complete=True), answer(is_complete=False)
