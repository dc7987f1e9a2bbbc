"""The response types of the engine (`oauthlib`). They check a request, and create the parameters that the browser sends to the client.

The two classes serve all combinations of code, access token and id token (Core 1.0, 3.1 to 3.3).
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from oauthlib.oauth2.rfc6749.grant_types import AuthorizationCodeGrant, ImplicitGrant
from oauthlib.oauth2.rfc6749.grant_types.base import GrantTypeBase

from authapi.details.types import MEMBER as DETAILS
from authapi.grants.user_access import ends_at, still_granted, user_access
from authapi.protocols.oauth.checks import check_login, check_names
from authapi.tokens.authorization_codes import issue_code
from authapi.tokens.bindings import bound_to
from authapi.tokens.id_tokens import id_token
from authapi.tokens.minting import Issue

# The members of an answer, in their order.
_MEMBERS = ("code", "access_token", "token_type", "expires_in", "scope", "id_token", DETAILS)


class _ResponseType(GrantTypeBase):  # type: ignore[misc]  # the engine has no types
    """The shared part of `CodeResponse` and `TokenResponse`.

    Before a request is answered, the caller sets `login` of the request (a `UserIssue`). If the response type contains a code, the caller
    also sets `code_parameters` of the request.
    """

    def __init__(self, request_validator: Any) -> None:
        super().__init__(request_validator, pre_auth=[check_names], post_auth=[check_login])
        # `add_token` is a method of the engine. It lets `BearerToken` of the engine create the access token.
        self.register_code_modifier(self.add_token)
        self.register_code_modifier(self.add_id_token)

    def create_authorization_response(self, request: Any, token_handler: Any) -> tuple[dict[str, str], dict[str, Any], int]:
        """Store the issued code and tokens, and return their members as the body. Raises `RequestRefused`.

        The engine's own method would check the request again, and store code and access token in two transactions.
        """
        members = self.create_authorization_code(request)
        for modifier in self._code_modifiers:
            members = modifier(members, token_handler, request)
        answer: tuple[dict[str, str], dict[str, Any], int] = self.prepare_authorization_response(request, members, {}, None, 302)
        return answer

    def create_authorization_code(self, request: Any) -> dict[str, Any]:
        """Return the code, if requested. Stores the row of the code and the row of an opaque access token in one transaction."""
        types = request.response_type.split()
        access: Issue | None = None
        with transaction.atomic():
            if "token" in types:
                request.login, entitlement = still_granted(request.login)
                # The browser sends no proof of a key, so no token is issued for an API that demands such a proof.
                bound_to(None, client=request.login.client, resource=entitlement.resource)
                access = user_access(request.login, entitlement, is_front_channel=True)
                request.issue, request.scopes = access, list(access.scopes)
            if "code" not in types:
                return {}
            if request.code_parameters is None:
                raise ValueError("A code needs its parameters.")
            return {"code": issue_code(request.login, request.code_parameters, until=ends_at(access) if access else None)}

    def add_id_token(self, members: dict[str, Any], token_handler: Any, request: Any) -> dict[str, Any]:
        """Add the id token if the response type contains `id_token`, even if the request does not contain the scope `openid`.

        Without that scope, the engine would omit the token.
        """
        types = request.response_type.split()
        if "id_token" in types:
            beside = {name: members.get(name) for name in ("access_token", "code")}
            # FAPI 1.0 Advanced, 5.1.1: an id token next to a code contains the hash of the state.
            beside["state"] = request.state if "code" in types else None
            members["id_token"] = id_token(request.login, front_channel=beside)
        if DETAILS in (request.issue.further if "token" in types else ()):
            # RFC 9396, 7: an answer with the access token also contains the details of the token.
            members[DETAILS] = request.issue.further[DETAILS]
        return members

    def prepare_authorization_response(
        self, request: Any, token: dict[str, Any], headers: dict[str, str], body: None, status: int
    ) -> tuple[dict[str, str], dict[str, Any], int]:
        # The engine would build the URL of the answer itself, but supports only two response modes. This service needs four modes. So this
        # method returns only the members, and `authapi.protocols.oauth.responses` builds the answer.
        return headers, {name: token[name] for name in _MEMBERS if name in token}, status

    def _handle_redirects(self, request: Any) -> None:
        # The engine's check is skipped, because `target_of` has checked the redirect URL. `target_of` permits private schemes and
        # wildcards. For an invalid URL, a page shows the error.
        request.redirect_uri = request.target.redirect_uri


class CodeResponse(_ResponseType, AuthorizationCodeGrant):  # type: ignore[misc]
    """The response types that contain `code`."""


class TokenResponse(_ResponseType, ImplicitGrant):  # type: ignore[misc]
    """The response types `token`, `id_token`, and both together."""

    response_types = ("token", "id_token")
