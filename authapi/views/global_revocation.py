"""`POST /oauth/global-token-revocation/connection/{name}`: the provider of a connection logs out one of its users (contract, 2.8)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from authapi.accounts.access import revoke_access
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.edge.rate_figures import REFUSED_REVOCATIONS
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.models import Initiator
from authapi.services import sign_in_log
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.global_revocation import checked_issuer
from authapi.upstream.people import known_user
from authapi.views.chain import Answer, Call, Later, Receive, Scope, Send, hot_endpoint
from foundation.tenancy import tenant_bound
from identity.models import Connection, User

_BEFORE = "oauth/global-token-revocation/connection/"
PATH = f"/{_BEFORE}<str:name>"
_DONE = Answer(204, b"", {"Cache-Control": "no-store"})
_FORMAT = "iss_sub"
_TYPE = "universal_logout"
_LONGEST_NAME = 128


async def global_revocation(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request for the connection in the path."""
    name = str(scope.get("url_route", {}).get("kwargs", {}).get("name", ""))
    await hot_endpoint(partial(_asked, name), name="global_revocation", methods=("POST",))(scope, receive, send)


def _asked(name: str, call: Call) -> Later:
    # Runs in a slow thread, because the keys of the provider may have to be fetched.
    return Later(partial(_revoked, name, call))


def _revoked(name: str, call: Call) -> Answer:
    """Log the user out.

    The provider gets the same answer for a known and an unknown user, and the same refusal for a wrong token and an unknown connection.
    """
    scheme, _, token = call.headers.get("authorization", "").partition(" ")
    with tenant_bound(call.host.tenant_id):
        rows = Connection.objects.of(call.host.tenant_id).filter(name=name[:_LONGEST_NAME], deletion_started_at__isnull=True)
        connection = rows.first()
        if connection is None or connection.name != name or scheme.lower() != "bearer" or not token.strip():
            raise _not_proven()
        issuer = _issuer(call, connection, token.strip())
        subject = _subject(call, issuer)
        user = known_user(connection, subject)
        if user is not None:
            revoke_access(user=user, reason=Initiator.IDP_LOGOUT)
        _note(call, connection, user=user, problem="" if user is not None else "The connection has no user with this subject.")
    return _DONE


def _issuer(call: Call, connection: Connection, token: str) -> str:
    try:
        return checked_issuer(connection, token, address=f"{call.host.issuer}{_BEFORE}{connection.name}")
    except UpstreamFailed as failed:
        # Above this rate, no line is written: any sender on the network can send such requests, and a flood must not fill the sign-in log.
        if REFUSED_REVOCATIONS.takes(call.host.tenant_id, connection.pk):
            _note(call, connection, problem=failed.detail or failed.failure.description)
        if failed.case is LoginCase.UPSTREAM_UNREACHABLE:
            raise
        raise _not_proven() from failed


def _subject(call: Call, issuer: str) -> str:
    """Return the subject in the body: `sub_id` as in draft-parecki-oauth-global-token-revocation, or `subject` as in the upstream service.

    Raises `RequestRefused`.
    """
    try:
        members = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    named: Any = members.get("subject") or members.get("sub_id")
    if not isinstance(named, Mapping):
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="subject")
    subject = named.get("sub")
    if named.get("format") != _FORMAT or named.get("iss") != issuer or not isinstance(subject, str) or not subject:
        reason = f"The subject must have the format {_FORMAT}, the issuer of the token as iss, and a sub."
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=reason)
    return subject


def _not_proven() -> RequestRefused:
    return RequestRefused(OAuthCase.INVALID_BEARER, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})


def _note(call: Call, connection: Connection, *, user: User | None = None, problem: str = "") -> None:
    sign_in_log.note(
        tenant_id=call.host.tenant_id,
        type=_TYPE,
        is_success=not problem,
        description=problem,
        user=user,
        connection=connection.name,
        ip=call.address,
        user_agent=call.headers.get("user-agent", ""),
    )
