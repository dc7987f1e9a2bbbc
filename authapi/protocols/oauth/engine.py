"""The toolkit's validator and the engine's server, extended: the engine decides grants, we authenticate, mint and translate."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from oauth2_provider.oauth2_backends import get_oauthlib_core
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.scopes import BaseScopes
from oauthlib.common import Request
from oauthlib.openid import Server as EngineServer

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.grants.authorization_code import AuthorizationCodeGrant
from authapi.grants.client_credentials import ClientCredentialsGrant
from authapi.grants.password import PasswordGrant, PasswordRealmGrant
from authapi.grants.refresh_token import RefreshTokenGrant
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.minting import Issue, minted

# Grants of the token endpoint this release serves; the engine knows more, and they stay unreachable until they are finished.
_GRANTS = (AuthorizationCodeGrant, ClientCredentialsGrant, RefreshTokenGrant, PasswordGrant, PasswordRealmGrant)
SERVED_GRANTS = tuple(grant.name for grant in _GRANTS)
# Those that hash what a person typed.
PASSWORD_GRANTS = frozenset({PasswordGrant.name, PasswordRealmGrant.name})


class ClientGrantScopes(BaseScopes):  # type: ignore[misc]  # the toolkit has no types
    """No scope is available unless a grant of ours says so: the toolkit would hand out every one it knows."""

    def get_all_scopes(self) -> dict[str, str]:
        return {}

    def get_available_scopes(self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        return []

    def get_default_scopes(self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        return []


class Validator(OAuth2Validator):  # type: ignore[misc]
    """Accepts the client that `authapi.client_auth` has proven."""

    def authenticate_client(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        return isinstance(request.client, Client)

    def authenticate_client_id(self, client_id: str, request: Any, *args: Any, **kwargs: Any) -> bool:
        return isinstance(request.client, Client) and request.client.is_public

    def validate_grant_type(self, client_id: str, grant_type: str, client: Client, request: Any, *args: Any, **kwargs: Any) -> bool:
        return client.allows_grant_type(grant_type)


class Server(EngineServer):  # type: ignore[misc]
    """The engine's server with our grants and our access tokens."""

    def __init__(self, request_validator: OAuth2Validator, **kwargs: Any) -> None:
        super().__init__(request_validator, **kwargs | {"token_generator": _access_token, "token_expires_in": _token_seconds})
        for grant in _GRANTS:
            self.grant_types[grant.name] = grant(request_validator)

    def exchange(self, token_request: TokenRequest, client: Client) -> bytes:
        """Return the body of a successful token answer, as it is sent; raise `RequestRefused` or the engine's `OAuth2Error`."""
        grant = requested_grant(token_request)
        # Parameters of a body would become members of the engine's request, such as `extra_credentials`: our grants read them from
        # `token_request`.
        request = Request(token_request.host.issuer + "oauth/token", "POST", headers={})
        request.client, request.client_id = client, client.client_id
        request.token_request = token_request
        _headers, body, _status = self.grant_types[grant].create_token_response(request, self.default_token_type)
        answer: bytes = body
        return answer


def requested_grant(token_request: TokenRequest) -> str:
    """Return the grant type asked for; raise `RequestRefused` when there is none or it is not served."""
    grant = token_request.text("grant_type")
    if grant is None:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="grant_type")
    if grant not in SERVED_GRANTS:
        raise RequestRefused(OAuthCase.UNSUPPORTED_GRANT, grant=grant[:100])
    return grant


@lru_cache(maxsize=1)
def server() -> Server:
    """Return the engine of this process, made as the toolkit's settings say. It keeps nothing between requests."""
    made: Server = get_oauthlib_core().server
    return made


def _access_token(request: Any) -> str:
    """Mint the access token of an engine request whose grant has left an `Issue`."""
    return minted(request.issue, client=request.client, host=request.token_request.host)


def _token_seconds(request: Any) -> int:
    """Return the life of the token that `_access_token` mints."""
    issue: Issue = request.issue
    return issue.seconds
