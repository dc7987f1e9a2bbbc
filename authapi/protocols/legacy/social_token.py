"""`POST /oauth/access_token`: a mobile application exchanges a token of a social provider for tokens of this service.

A token does not show to which application it was issued, so this service asks the provider. Without this check, another application to
which a user gave a token of the provider could log in here as this user (OAuth 2.0 Security, RFC 9700, 4.16: confused deputy).
"""

from __future__ import annotations

from authapi.accounts.event_context import context_of
from authapi.accounts.password_login import note_login_without_signals
from authapi.failures import Case, RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.failures.logins import LoginCase
from authapi.grants.password import check_organization, issued
from authapi.grants.user_grant import sender_of
from authapi.models import Client
from authapi.protocols.legacy.opting_in import SOCIAL_TOKEN, require_grant
from authapi.protocols.legacy.policy import check_without_pages
from authapi.protocols.legacy.requests import LegacyRequest, Reply, named_client, named_connection
from authapi.protocols.legacy.token_replies import for_profile, token_reply
from authapi.services import sign_in_log
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.foreign_tokens import CannotTell, owner_of_token
from authapi.upstream.people import user_of
from authapi.upstream.provider import STRATEGIES
from foundation.change_context import change_context
from identity.models import Connection, User

METHOD = "federated"
_CASES: dict[Case, LegacyCase] = {
    LoginCase.USER_BLOCKED: LegacyCase.USER_BLOCKED,
    LoginCase.UPSTREAM_TOKEN_REFUSED: LegacyCase.INVALID_SOCIAL_TOKEN,
    LoginCase.UPSTREAM_UNREACHABLE: LegacyCase.PROVIDER_SILENT,
}


def social_token(request: LegacyRequest) -> Reply:
    """Return tokens for the user of a provider's token. Raises `RequestRefused`; the sign-in log contains the reason."""
    client = named_client(request)
    require_grant(client, SOCIAL_TOKEN)
    token = request.needed("access_token")
    connection = named_connection(request, client, request.needed("connection"))
    if connection.strategy not in STRATEGIES:
        raise RequestRefused(LegacyCase.WRONG_STRATEGY)
    check_organization(request, client)
    user = _user(request, client, connection, token)
    check_without_pages(client, user)
    note_login_without_signals(user, request.address)
    _note(request, client, connection, user)
    granted = issued(for_profile(request), client, connection, user, sender_of(request), methods=(METHOD,))
    return token_reply(request, client, granted)


def _user(request: LegacyRequest, client: Client, connection: Connection, token: str) -> User:
    try:
        owner = owner_of_token(connection, token)
        with change_context(context_of(request.host, client, ip=request.address, user_agent=request.user_agent)):
            return user_of(connection, owner)
    except CannotTell as error:
        raise RequestRefused(LegacyCase.PROVIDER_CANNOT_TELL) from error
    except UpstreamFailed as failed:
        _note(request, client, connection, None, f"{failed.failure.description} {failed.detail}")
        case = _CASES.get(failed.case)
        if case is None:
            raise
        raise RequestRefused(case) from failed


def _note(request: LegacyRequest, client: Client, connection: Connection, user: User | None, problem: str = "") -> None:
    sign_in_log.note(
        tenant_id=request.host.tenant_id,
        type="f" if problem else "s",
        is_success=not problem,
        description=problem,
        user=user,
        client=client,
        connection=connection.name,
        ip=request.address,
        user_agent=request.user_agent,
    )
