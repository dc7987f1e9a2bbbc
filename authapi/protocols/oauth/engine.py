"""Extends the server of the engine (`oauthlib`) and the validator of the toolkit (`django-oauth-toolkit`).

The engine decides in which order a request is checked and answered. The code of this service authenticates clients, creates tokens and maps
errors.
"""

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

# The grants of the token endpoint. The engine supports more grants; the token endpoint refuses every grant that is not in this list.
_GRANTS = (
    AuthorizationCodeGrant, ClientCredentialsGrant, RefreshTokenGrant, PasswordGrant, PasswordRealmGrant, PasswordlessGrant,
    DeviceCodeGrant, CibaGrant, OtpGrant, OobGrant, RecoveryCodeGrant, PasskeyGrant,
    TokenExchangeGrant,
)  # fmt: skip
SERVED_GRANTS = tuple(grant.name for grant in _GRANTS)
# Grants for which the service must hash a password that the user has typed.
PASSWORD_GRANTS = frozenset({PasswordGrant.name, PasswordRealmGrant.name})


class ClientGrantScopes(BaseScopes):  # type: ignore[misc]  # the toolkit has no types
    """Offers no scopes, because the grants of this service decide which scopes a client gets.

    The toolkit would allow every scope in its settings.
    """

    def get_all_scopes(self) -> dict[str, str]:
        return {}

    def get_available_scopes(self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        return []

    def get_default_scopes(self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        return []


class Validator(AuthorizationChecks, OAuth2Validator):  # type: ignore[misc]
    """Implements the engine's callbacks, which find the client, check its permissions and its requests, and revoke tokens."""

    def client_authentication_required(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        # Public clients also pass this step: a client id without a secret or key is one of the methods of `authapi.client_auth`.
        return True

    def authenticate_client(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Accept a client that is already authenticated, or authenticate it now. Raises `RequestRefused`.

        Replaces the method of the toolkit, which accepts only a secret, in the header or in the body, and searches all tenants.
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
        """Revoke a token of the client, and store in the request whether the token belonged to the client.

        The hint is ignored (RFC 7009, 2.1), because a token shows its kind. The toolkit would delete one stored row, and leave JWTs and the
        other tokens of the lineage valid.
        """
        request.is_own_token = revoke_own(token, client=request.client, host=request.host)


class Server(EngineServer):  # type: ignore[misc]
    """The engine's server with the grants, response types and access tokens of this service.

    Each method serves one endpoint: it builds the engine's request, and lets the engine check and answer the request. The checks that the
    engine calls for an endpoint are methods of `Validator`. CONTRIBUTING.md describes how to add an endpoint.
    """

    def __init__(self, request_validator: OAuth2Validator, **kwargs: Any) -> None:
        super().__init__(request_validator, **kwargs | {"token_generator": _access_token, "token_expires_in": _token_seconds})
        for grant in _GRANTS:
            self.grant_types[grant.name] = grant(request_validator)
        code, token = CodeResponse(request_validator), TokenResponse(request_validator)
        # The engine's type `none` returns only the state. This service does not support this type.
        types = [name for name in self.response_types if name != "none"]
        self._response_types = {name: code if "code" in name.split() else token for name in types}

    def exchange(self, token_request: TokenRequest, client: Client) -> bytes:
        """Return the body of a successful token response as bytes. Raises `RequestRefused` or the engine's `OAuth2Error`."""
        grant = requested_grant(token_request)
        request = _engine_request(token_request)
        request.client, request.client_id = client, client.client_id
        _headers, body, _status = self.grant_types[grant].create_token_response(request, self.default_token_type)
        answer: bytes = body
        return answer

    def check_authorization(self, request: AuthorizationCall) -> None:
        """Check a request at the authorization endpoint. Raises `RequestRefused` or the engine's `OAuth2Error`."""
        self._response_type(request).validate_authorization_request(request)

    def answer_authorization(self, request: Any) -> dict[str, Any]:
        """Return the members of a successful authorization response. Raises `RequestRefused`."""
        _headers, members, _status = self._response_type(request).create_authorization_response(request, self.default_token_type)
        answer: dict[str, Any] = members
        return answer

    def check_device_request(self, token_request: TokenRequest, client: Client) -> None:
        """Check a device authorization request (RFC 8628, 3.1) of an authenticated client. Raises `RequestRefused` or `OAuth2Error`."""
        request = _engine_request(token_request)
        request.client, request.client_id = client, client.client_id
        # The body, possibly JSON, has already been read. The engine accepts a form only.
        request.headers = {"Content-Type": "application/x-www-form-urlencoded"}
        request.scope = token_request.text("scope")
        self.device_code_grant.validate_device_authorization_request(request)

    def revoke(self, token_request: TokenRequest) -> bool:
        """Revoke a token. Return whether the token belonged to the client. Raises `RequestRefused` or the engine's `OAuth2Error`.

        The engine's `create_revocation_response` also revokes a token, but it answers refusals with the engine's texts.
        """
        request = _engine_request(token_request)
        request.token_type_hint = token_request.form.get("token_type_hint")
        # The engine would report a missing token before it authenticates the client. An unauthenticated sender must not see this error.
        self.request_validator.authenticate_client(request)
        self.validate_revocation_request(request)
        self.request_validator.revoke_token(request.token, request.token_type_hint, request)
        is_own: bool = request.is_own_token
        return is_own

    def _response_type(self, request: Any) -> Any:
        # Like the engine's own method, this method returns the default handler for an unknown type. The default handler refuses the
        # request.
        return self.response_types.get(request.response_type, self.default_response_type_handler)

    def _raise_on_missing_token(self, request: Any) -> None:
        # This check replaces the engine's check, so that the error text is from this service. `required` also refuses a token that is not a
        # string.
        request.token = request.token_request.required("token")


def _engine_request(token_request: TokenRequest) -> EngineRequest:
    """Return the engine's request for a token request. Grants and validator read the parameters from `token_request`."""
    request = EngineRequest()
    request.token_request, request.host = token_request, token_request.host
    return request


def requested_grant(token_request: TokenRequest) -> str:
    """Return the requested grant type. Raises `RequestRefused` if the grant type is missing or not supported."""
    grant = token_request.text("grant_type")
    if grant is None:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="grant_type")
    if grant not in SERVED_GRANTS:
        raise RequestRefused(OAuthCase.UNSUPPORTED_GRANT, grant=grant[:100])
    return grant


def is_slow(token_request: TokenRequest) -> bool:
    """Tell whether the answer to a request requires hashing a password, or may require a call to an external server.

    Raises `RequestRefused`.
    """
    grant = requested_grant(token_request)
    return grant in PASSWORD_GRANTS or (grant == TokenExchangeGrant.name and asks_elsewhere(token_request))


@lru_cache(maxsize=1)
def server() -> Server:
    """Return the engine of this process, built from the toolkit's settings. The engine keeps no state between requests."""
    made: Server = get_oauthlib_core().server
    return made


def _access_token(request: Any) -> str:
    """Create the access token of an engine request. The grant or the response type has set `request.issue` before."""
    return minted(request.issue, client=request.client, host=request.host)


def _token_seconds(request: Any) -> int:
    """Return the lifetime of the token that `_access_token` creates, in seconds."""
    issue: Issue = request.issue
    return issue.seconds
