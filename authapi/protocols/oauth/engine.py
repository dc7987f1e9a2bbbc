"""The toolkit's validator and the engine's server, extended: the engine decides, we authenticate, mint and translate."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from oauth2_provider.oauth2_backends import get_oauthlib_core
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.scopes import BaseScopes
from oauthlib.openid import Server as EngineServer

from authapi import client_auth
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.grants.authorization_code import AuthorizationCodeGrant
from authapi.grants.ciba import CibaGrant
from authapi.grants.client_credentials import ClientCredentialsGrant
from authapi.grants.device_code import DeviceCodeGrant
from authapi.grants.passkeys import PasskeyGrant
from authapi.grants.password import PasswordGrant, PasswordRealmGrant
from authapi.grants.passwordless import PasswordlessGrant
from authapi.grants.refresh_token import RefreshTokenGrant
from authapi.grants.second_factor import OobGrant, OtpGrant, RecoveryCodeGrant
from authapi.models import Client
from authapi.protocols.oauth.checks import AuthorizationChecks
from authapi.protocols.oauth.engine_request import AuthorizationCall, EngineRequest
from authapi.protocols.oauth.response_types import CodeResponse, TokenResponse
from authapi.protocols.oauth.token_exchange import TokenExchangeGrant, asks_elsewhere
from authapi.token_request import TokenRequest
from authapi.tokens.minting import Issue, minted
from authapi.tokens.revocation import revoke_own

# Grants of the token endpoint this release serves; the engine knows more, and they stay unreachable until they are finished.
_GRANTS = (
    AuthorizationCodeGrant, ClientCredentialsGrant, RefreshTokenGrant, PasswordGrant, PasswordRealmGrant, PasswordlessGrant,
    DeviceCodeGrant, CibaGrant, OtpGrant, OobGrant, RecoveryCodeGrant, PasskeyGrant,
    TokenExchangeGrant,
)  # fmt: skip
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


class Validator(AuthorizationChecks, OAuth2Validator):  # type: ignore[misc]
    """What the engine asks of us: who the client is, what it may do, what a request may hold, and how a token ends."""

    def client_authentication_required(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        # To present nothing but an id is one of the methods of `authapi.client_auth`.
        return True

    def authenticate_client(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Accept the client that is proven already, or prove it now. Raises `RequestRefused`.

        The toolkit knows a secret in two places only, and finds a client by its id in all tenants.
        """
        if request.client is None:
            request.client = client_auth.authenticate(request.token_request)
            request.client_id = request.client.client_id
        return isinstance(request.client, Client)

    def authenticate_client_id(self, client_id: str, request: Any, *args: Any, **kwargs: Any) -> bool:
        return isinstance(request.client, Client) and request.client.is_public

    def validate_grant_type(self, client_id: str, grant_type: str, client: Client, request: Any, *args: Any, **kwargs: Any) -> bool:
        return client.allows_grant_type(grant_type)

    def revoke_token(self, token: str, token_type_hint: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        """End a token of the client and note in the request whether there was one.

        The hint changes nothing (RFC 7009, 2.1): a token shows which kind it is. The toolkit would drop one stored row and
        leave JWTs and the rest of a family alive.
        """
        request.is_own_token = revoke_own(token, client=request.client, host=request.host)


class Server(EngineServer):  # type: ignore[misc]
    """The engine's server with our grants, our response types and our access tokens.

    Each method is for one endpoint: it makes the engine's request of one of ours, and has the engine check and answer it. What an
    endpoint of the engine asks for is a method of `Validator`. CONTRIBUTING.md says how an endpoint is added.
    """

    def __init__(self, request_validator: OAuth2Validator, **kwargs: Any) -> None:
        super().__init__(request_validator, **kwargs | {"token_generator": _access_token, "token_expires_in": _token_seconds})
        for grant in _GRANTS:
            self.grant_types[grant.name] = grant(request_validator)
        code, token = CodeResponse(request_validator), TokenResponse(request_validator)
        # The engine's type `none` answers with nothing but the state, and is not served.
        types = [name for name in self.response_types if name != "none"]
        self._response_types = {name: code if "code" in name.split() else token for name in types}

    def exchange(self, token_request: TokenRequest, client: Client) -> bytes:
        """Return the body of a successful token answer, as it is sent; raise `RequestRefused` or the engine's `OAuth2Error`."""
        grant = requested_grant(token_request)
        request = _engine_request(token_request)
        request.client, request.client_id = client, client.client_id
        _headers, body, _status = self.grant_types[grant].create_token_response(request, self.default_token_type)
        answer: bytes = body
        return answer

    def check_authorization(self, request: AuthorizationCall) -> None:
        """Check a request of the authorization endpoint; raise `RequestRefused` or the engine's `OAuth2Error`."""
        self._response_type(request).validate_authorization_request(request)

    def answer_authorization(self, request: Any) -> dict[str, Any]:
        """Return the members of a successful authorization response; raise `RequestRefused`."""
        _headers, members, _status = self._response_type(request).create_authorization_response(request, self.default_token_type)
        answer: dict[str, Any] = members
        return answer

    def check_device_request(self, token_request: TokenRequest, client: Client) -> None:
        """Check a device authorization request (RFC 8628, 3.1) of an authenticated client; raise `RequestRefused` or `OAuth2Error`."""
        request = _engine_request(token_request)
        request.client, request.client_id = client, client.client_id
        # The body is read already, also where it came as JSON; the engine takes a form.
        request.headers = {"Content-Type": "application/x-www-form-urlencoded"}
        request.scope = token_request.text("scope")
        self.device_code_grant.validate_device_authorization_request(request)

    def revoke(self, token_request: TokenRequest) -> bool:
        """End a token and return whether it was the client's own; raise `RequestRefused` or the engine's `OAuth2Error`.

        `create_revocation_response` does the same with a body of its own making: it would answer refusals with the texts of the
        engine.
        """
        request = _engine_request(token_request)
        request.token_type_hint = token_request.form.get("token_type_hint")
        # The engine names a missing token before it asks for the client; a sender that is not proven learns nothing here.
        self.request_validator.authenticate_client(request)
        self.validate_revocation_request(request)
        self.request_validator.revoke_token(request.token, request.token_type_hint, request)
        is_own: bool = request.is_own_token
        return is_own

    def _response_type(self, request: Any) -> Any:
        # The engine's way: its default refuses what has no entry.
        return self.response_types.get(request.response_type, self.default_response_type_handler)

    def _raise_on_missing_token(self, request: Any) -> None:
        # In the place of the engine's check: the text is of our table, also for a token that is no text.
        request.token = request.token_request.required("token")


def _engine_request(token_request: TokenRequest) -> EngineRequest:
    """Return the engine's request for one of ours. Grants and validator read the parameters from `token_request`."""
    request = EngineRequest()
    request.token_request, request.host = token_request, token_request.host
    return request


def requested_grant(token_request: TokenRequest) -> str:
    """Return the grant type asked for; raise `RequestRefused` when there is none or it is not served."""
    grant = token_request.text("grant_type")
    if grant is None:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="grant_type")
    if grant not in SERVED_GRANTS:
        raise RequestRefused(OAuthCase.UNSUPPORTED_GRANT, grant=grant[:100])
    return grant


def is_slow(token_request: TokenRequest) -> bool:
    """Tell whether a request hashes what a person typed, or may ask a server elsewhere. Raises `RequestRefused`."""
    grant = requested_grant(token_request)
    return grant in PASSWORD_GRANTS or (grant == TokenExchangeGrant.name and asks_elsewhere(token_request))


@lru_cache(maxsize=1)
def server() -> Server:
    """Return the engine of this process, made as the toolkit's settings say. It keeps nothing between requests."""
    made: Server = get_oauthlib_core().server
    return made


def _access_token(request: Any) -> str:
    """Mint the access token of an engine request whose grant or response type has left an `Issue`."""
    return minted(request.issue, client=request.client, host=request.host)


def _token_seconds(request: Any) -> int:
    """Return the life of the token that `_access_token` mints."""
    issue: Issue = request.issue
    return issue.seconds
