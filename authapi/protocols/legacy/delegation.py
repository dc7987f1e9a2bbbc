"""`POST /delegation`: exchanges a login at one client for an id token of another client, the target.

The setting `allowed_clients` of a target names the clients that may get tokens for the target. A client may always get a token for itself.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from authapi.accounts.brute_force import counted_address
from authapi.edge.rate_figures import DELEGATIONS
from authapi.edge.throttling import Rate
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.grants.refresh_token import is_holder
from authapi.login.connections import client_connections
from authapi.models import Client, RefreshToken, Session
from authapi.protocols.legacy.opting_in import DELEGATION_BY_ID_TOKEN, DELEGATION_BY_REFRESH_TOKEN, require_grant
from authapi.protocols.legacy.policy import check_without_pages
from authapi.protocols.legacy.requests import JWT_BEARER, LegacyRequest, Reply, client_named, named_client
from authapi.protocols.legacy.token_replies import NO_STORE
from authapi.services import sign_in_log
from authapi.tokens.id_token_hints import own_claims
from authapi.tokens.id_tokens import id_token, id_token_seconds
from authapi.tokens.profile_claims import SIGN_IN_SCOPES
from authapi.tokens.refresh_tokens import has_ended, locked_refresh_token, policy_of
from authapi.tokens.user_tokens import UserIssue
from foundation.database.transactions import unit_of_work
from identity.models import User

# The accepted values of `api_type`. These values request an id token of this service. Other values request tokens of other services, such
# as `aws` and `firebase`, which are not supported.
_API_TYPES = (None, "app", "auth0")
_LASTING = frozenset({"offline_access", "online_access"})
_SUCCESS, _FAILURE = "sd", "fd"


@dataclass(frozen=True)
class _Login:
    """The login to delegate."""

    user: User
    auth_time: datetime
    methods: Sequence[Mapping[str, Any]]


def delegation(request: LegacyRequest) -> Reply:
    """Return an id token for the target. Raises `RequestRefused`."""
    client = named_client(request)
    if request.needed("grant_type") != JWT_BEARER:
        raise RequestRefused(LegacyCase.WRONG_GRANT_TYPE, grants=JWT_BEARER)
    login = _login(request, client)
    try:
        target = _target(request, client)
        _check(target, client, login.user)
    except RequestRefused as refused:
        _note(request, client, login.user, refused.failure.description)
        raise
    address = counted_address(request.address)
    if not DELEGATIONS.takes(request.host.tenant_id, login.user.user_id, address):
        raise RequestRefused(LegacyCase.TOO_MANY_DELEGATIONS, rate=Rate.of_empty(DELEGATIONS))
    members = {"id_token": id_token(_issue(request, target, login)), "token_type": "bearer", "expires_in": id_token_seconds(target)}
    _note(request, client, login.user, "", target=target.client_id)
    return Reply(members, headers=NO_STORE)


def _login(request: LegacyRequest, client: Client) -> _Login:
    token, refresh_token, api_type = request.text("id_token"), request.text("refresh_token"), request.text("api_type")
    if (token is None) == (refresh_token is None):
        raise RequestRefused(LegacyCase.ONE_TOKEN)
    if api_type not in _API_TYPES:
        raise RequestRefused(LegacyCase.WRONG_API_TYPE, api_type=str(api_type)[:100])
    if token is not None:
        require_grant(client, DELEGATION_BY_ID_TOKEN)
        return _of_id_token(request, client, token)
    require_grant(client, DELEGATION_BY_REFRESH_TOKEN)
    return _of_refresh_token(request, client, refresh_token or "")


def _of_id_token(request: LegacyRequest, client: Client, token: str) -> _Login:
    """Return the login of an id token that was issued to this client.

    The token must not have expired, and its session must not have ended.
    """
    tenant_id = request.host.tenant_id
    try:
        claims = own_claims(token, tenant_id=tenant_id)
    except RequestRefused as refused:
        raise RequestRefused(LegacyCase.INVALID_ID_TOKEN) from refused
    expires_at, proven_at = claims.get("exp"), claims.get("auth_time")
    user = User.objects.of(tenant_id).select_related("connection").filter(user_id=claims["sub"]).first()
    is_own = claims["aud"] == client.client_id and isinstance(expires_at, int) and expires_at > time.time()
    # A login for an organization is not delegated: a target outside the organization must not learn facts about the organization.
    if user is None or not is_own or "org_id" in claims or not _is_session_alive(user, claims.get("sid")):
        raise RequestRefused(LegacyCase.INVALID_ID_TOKEN)
    auth_time = datetime.fromtimestamp(proven_at, tz=UTC) if isinstance(proven_at, int) else timezone.now()
    named = claims.get("amr") if isinstance(claims.get("amr"), list) else []
    return _Login(user, auth_time, [{"name": str(name), "timestamp": auth_time.isoformat()} for name in named or []])


def _is_session_alive(user: User, sid: Any) -> bool:
    """Tell whether the session of a token has not ended. True for a token that names no session."""
    if not sid:
        return True
    sessions = Session.objects.of(user.tenant_id).filter(pk=str(sid)[:32], user=user)
    return sessions.filter(idle_expires_at__gt=timezone.now()).exists()


@unit_of_work
def _of_refresh_token(request: LegacyRequest, client: Client, token: str) -> _Login:
    """Return the login of a refresh token of this client. Does not use up the token, so clients with rotating tokens are refused."""
    policy = policy_of(client)
    if policy.is_rotating:
        # Rotation detects a stolen token, because its second use is refused. This endpoint does not rotate the token, so the service would
        # not detect that an attacker also uses the token here.
        raise RequestRefused(LegacyCase.ROTATING_TOKENS)
    row = locked_refresh_token(tenant_id=request.host.tenant_id, token=token)
    now = timezone.now()
    is_own = isinstance(row, RefreshToken) and row.application_id == client.pk and row.organization_id is None
    if row is None or not is_own or has_ended(row, policy, now=now) or not is_holder(row, request, client, now=now):
        raise RequestRefused(LegacyCase.INVALID_REFRESH_TOKEN)
    return _Login(row.user, row.auth_time or row.created, row.methods)


def _target(request: LegacyRequest, client: Client) -> Client:
    """Return the target client. The error is the same for an unknown target and for a target that does not allow the client."""
    named = request.text("target") or client.client_id
    if named == client.client_id:
        return client
    target = client_named(request.host.tenant_id, named)
    if target is None or client.client_id not in (target.settings.get("allowed_clients") or ()):
        raise RequestRefused(LegacyCase.TARGET_NOT_ALLOWED)
    return target


def _check(target: Client, client: Client, user: User) -> None:
    """Raise `RequestRefused` if the user may not log in to the target, or if a login at the target needs a page."""
    check_without_pages(client, user)
    check_without_pages(target, user)
    if not target.is_first_party:
        # A third-party client may get the identity of the user only after the user's consent.
        raise RequestRefused(LegacyCase.PAGE_NEEDED)
    if all(one.pk != user.connection_id for one in client_connections(target)):
        raise RequestRefused(LegacyCase.CONNECTION_DISABLED)


def _issue(request: LegacyRequest, target: Client, login: _Login) -> UserIssue:
    wanted = dict.fromkeys(("openid", *(request.text("scope") or "").split()))
    return UserIssue(
        host=request.host,
        client=target,
        user=login.user,
        connection=login.user.connection,
        audience="",
        scopes=tuple(scope for scope in wanted if scope in SIGN_IN_SCOPES - _LASTING),
        session=None,
        organization=None,
        auth_time=login.auth_time,
        methods=login.methods,
        nonce="",
        lineage=uuid.uuid4(),
        confirmation=None,
    )


def _note(request: LegacyRequest, client: Client, user: User, problem: str, **details: str) -> None:
    sign_in_log.note(
        tenant_id=request.host.tenant_id,
        type=_FAILURE if problem else _SUCCESS,
        is_success=not problem,
        description=problem,
        user=user,
        client=client,
        connection=user.connection.name,
        ip=request.address,
        user_agent=request.user_agent,
        details=dict(details),
    )
