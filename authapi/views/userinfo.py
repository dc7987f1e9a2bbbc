"""`/userinfo`: the current profile of the user of an access token (OpenID Connect Core 1.0, 5.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from authapi.compliance.enforcing import check, interaction_headers
from authapi.compliance.levels import NONE, broken
from authapi.compliance.rules import ProfileFacts, Stage, TokenFacts
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import Failure, RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.models import Client
from authapi.possession.holders import BEARER, DPOP, SCHEMES, NotHeld, Shown, require_held
from authapi.possession.presented import Asked
from authapi.tokens.opaque_tokens import find_opaque_token
from authapi.tokens.profile_claims import SHOWN, ProfileSwitches, profile_claims, profile_switches
from authapi.tokens.verifying import TokenRefused, verify_profile_token
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from foundation.database.compiled_select import CompiledSelect
from foundation.database.loop_queries import GatheredSelect
from foundation.memory.ttl_cache import Cold
from identity.models import User

PATH = "/userinfo"
# The URL may contain a token, so browsers must not send the URL to other sites as the referrer.
_FRESH = {"Cache-Control": "no-store", "Pragma": "no-cache", "Referrer-Policy": "no-referrer"}
_MOST_PARAMETERS = 20
_FORM = "application/x-www-form-urlencoded"
# The SQL query omits the connection, which only the rare scope `identities` needs. Reading the connection would cost each request 20 % more
# CPU time.
_USER = CompiledSelect(
    lambda tenant_id, user_id: User.objects.of(tenant_id).filter(user_id=user_id).order_by(),
    "tenant_id",
    "user_id",
)
# The SQL query for the event loop. This query reads the same row, but only the columns that contain claims or are checked.
_USER_AT_ONCE = GatheredSelect(
    "profile_user",
    lambda tenant_id, user_id: User.objects.of(tenant_id).filter(user_id=user_id).only("tenant", "user_id", "blocked", *SHOWN).order_by(),
    "tenant_id",
    "user_id",
)
_REFUSED = OAuthCase.INVALID_BEARER, OAuthCase.BEARER_LACKS_SCOPE, OAuthCase.LEVEL_BREAKS_REQUEST


@dataclass(frozen=True)
class _Opened:
    """The user of a token, the scopes of the token, its binding, and the settings of its client."""

    user: User
    scopes: Collection[str]
    confirmation: Mapping[str, Any] | None
    switches: ProfileSwitches
    # Claims that the client requested by name. The scopes do not limit them.
    named: Collection[str] = ()


@dataclass(frozen=True)
class _Presented:
    """A token, its scheme, and whether it came in the Authorization header."""

    token: str = field(repr=False)
    scheme: str = BEARER
    is_in_header: bool = False


def _userinfo(call: Call) -> Answer:
    # `_profile` adds the headers that the client's compliance level requires. Later refusals have these headers, too.
    headers = dict(_FRESH)
    try:
        return _profile(call, headers)
    except NotHeld as error:
        members = {"error": error.error, "error_description": error.message}
        return json_answer(members, status=error.status, headers=headers | error.headers)
    except RequestRefused as refused:
        if refused.case not in _REFUSED:
            raise
        is_missing = not _header_token(call)[1] and not call.body and not _query_tokens(call)
        return _challenge(refused.failure, headers, is_missing=is_missing)


def _profile(call: Call, headers: dict[str, str]) -> Answer:
    presented = _presented(call)
    token = presented.token
    opened = _opened_by_jwt(call, token) if token.count(".") == 2 else _opened_by_row(call, token)
    level = opened.switches.level
    if level != NONE:
        headers |= interaction_headers(call.headers, level, makes_one=True)
        check(level, Stage.PROFILE, ProfileFacts(presented.is_in_header))
        if any(broken(level, Stage.TOKEN, TokenFacts(opened.confirmation or {}, ""))):
            # The token was issued before its client got the compliance level.
            raise RequestRefused(OAuthCase.INVALID_BEARER)
    if opened.user.blocked:
        raise RequestRefused(OAuthCase.INVALID_BEARER)
    if opened.confirmation or presented.scheme == DPOP:
        require_held(opened.confirmation, Shown(presented.scheme, token, Asked(call.host, call.method, PATH, call.headers)))
    if "openid" not in opened.scopes:
        raise RequestRefused(OAuthCase.BEARER_LACKS_SCOPE, scope="openid")
    return _shown(opened, headers)


async def _userinfo_at_once(call: Call) -> Answer:
    """Fast path: answer a request whose header has an unbound JWT of a client without a compliance level. Reads one row.

    The plain path is `_userinfo`, in a thread; it answers all other requests and makes all refusals. Raises `Cold` and `RequestRefused`.
    """
    call.charge.require_room()
    presented = _presented(call)
    if presented.scheme != BEARER or not presented.is_in_header or presented.token.count(".") != 2:
        raise Cold
    try:
        claims, switches = verify_profile_token(presented.token, host=call.host)
    except TokenRefused as error:
        raise Cold from error
    if claims.confirmation or claims.userinfo_claims or switches.level != NONE:
        raise Cold
    if "openid" not in claims.scopes or "identities" in claims.scopes:
        raise Cold
    user = await _USER_AT_ONCE.first(tenant_id=call.host.tenant_id, user_id=claims.subject)
    if user is None or user.blocked:
        raise Cold
    return _shown(_Opened(user, claims.scopes, None, switches), _FRESH)


def _shown(opened: _Opened, headers: dict[str, str]) -> Answer:
    claims = profile_claims(opened.user, opened.scopes, opened.named, writes_times_as_text=opened.switches.writes_times_as_text)
    return json_answer({"sub": opened.user.user_id, **claims}, headers=headers)


def _presented(call: Call) -> _Presented:
    """Return the token from the header, a form, or the query (RFC 6750, 2.1, 2.2 and 2.3).

    Raises `RequestRefused` for a request without a token, or with more than one.
    """
    scheme, token = _header_token(call)
    if token and not call.body and not call.query:
        return _Presented(token, scheme, is_in_header=True)
    found = [_Presented(token, scheme, is_in_header=True)] if token else []
    found += [_Presented(token) for token in (_form_token(call),) if token]
    found += [_Presented(token) for token in _query_tokens(call)]
    if len(found) > 1:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The access token was sent in more than one way.")
    if not found:
        raise RequestRefused(OAuthCase.INVALID_BEARER)
    return found[0]


def _header_token(call: Call) -> tuple[str, str]:
    """Return the scheme and the token of the header; both are empty without a header."""
    scheme, _, token = call.headers.get("authorization", "").partition(" ")
    return (scheme.lower(), token.strip()) if scheme.lower() in SCHEMES else ("", "")


def _form_token(call: Call) -> str | None:
    if not call.body or call.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        return None
    try:
        posted = parse_body(_FORM, call.body).get("access_token")
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    return str(posted) if posted else None


def _query_tokens(call: Call) -> list[str]:
    if b"access_token" not in call.query:
        return []
    try:
        pairs = parse_qsl(call.query.decode("ascii"), errors="strict", max_num_fields=_MOST_PARAMETERS)
    except ValueError as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The query cannot be read.") from error
    return [value for name, value in pairs if name == "access_token" and value]


def _opened_by_jwt(call: Call, token: str) -> _Opened:
    try:
        claims, switches = verify_profile_token(token, host=call.host)
    except TokenRefused as error:
        raise RequestRefused(OAuthCase.INVALID_BEARER) from error
    user = _USER.first(tenant_id=call.host.tenant_id, user_id=claims.subject)
    if user is None:
        raise RequestRefused(OAuthCase.INVALID_BEARER)
    return _Opened(user, claims.scopes, claims.confirmation, switches, claims.userinfo_claims)


def _opened_by_row(call: Call, token: str) -> _Opened:
    row = find_opaque_token(tenant_id=call.host.tenant_id, token=token)
    if row is None or row.user is None or not _is_usable(row.application):
        raise RequestRefused(OAuthCase.INVALID_BEARER)
    named = row.asked.get("userinfo", ()) if row.asked else ()
    return _Opened(row.user, row.scope.split(), row.confirmation, profile_switches(row.application.settings), named)


def _is_usable(client: Client | None) -> bool:
    return client is not None and client.is_usable(None)


def _challenge(failure: Failure, headers: dict[str, str], *, is_missing: bool) -> Answer:
    # RFC 6750, 3: without a token, the challenge names no error.
    details = "" if is_missing else f', error="{failure.error}", error_description="{failure.description}"'
    members = {"error": failure.error, "error_description": failure.description}
    return json_answer(members, status=failure.status, headers={**headers, "WWW-Authenticate": f'Bearer realm="userinfo"{details}'})


userinfo = hot_endpoint(_userinfo, name="userinfo", methods=("GET", "POST"), at_once=_userinfo_at_once)
