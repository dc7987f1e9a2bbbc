"""The engine's response types: its checks of a request, and what a browser carries back for each set of them.

Code, access token and id token in every combination (Core 1.0, 3.1 to 3.3).
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

# As they stand in an answer.
_MEMBERS = ("code", "access_token", "token_type", "expires_in", "scope", "id_token", DETAILS)


class _ResponseType(GrantTypeBase):  # type: ignore[misc]  # the engine has no types
    """What the engine's two grants of the front channel share here.

    A request for an answer has `login`, a `UserIssue`, and `code_parameters` where the type holds a code.
    """

    def __init__(self, request_validator: Any) -> None:
        super().__init__(request_validator, pre_auth=[check_names], post_auth=[check_login])
        # The engine's own: the access token comes of its `BearerToken`.
        self.register_code_modifier(self.add_token)
        self.register_code_modifier(self.add_id_token)

    def create_authorization_response(self, request: Any, token_handler: Any) -> tuple[dict[str, str], dict[str, Any], int]:
        """Store what is issued and return its members as the body. Raises `RequestRefused`.

        The engine's own would check the request again, and store code and access token in two transactions.
        """
        members = self.create_authorization_code(request)
        for modifier in self._code_modifiers:
            members = modifier(members, token_handler, request)
        answer: tuple[dict[str, str], dict[str, Any], int] = self.prepare_authorization_response(request, members, {}, None, 302)
        return answer

    def create_authorization_code(self, request: Any) -> dict[str, Any]:
        """Return the code where there is one, with its row and that of an opaque access token stored together."""
        types = request.response_type.split()
        access: Issue | None = None
        with transaction.atomic():
            if "token" in types:
                request.login, entitlement = still_granted(request.login)
                # No proof comes with a browser: an API that asks for one gets no token here.
                bound_to(None, client=request.login.client, resource=entitlement.resource)
                access = user_access(request.login, entitlement, is_front_channel=True)
                request.issue, request.scopes = access, list(access.scopes)
            if "code" not in types:
                return {}
            if request.code_parameters is None:
                raise ValueError("A code needs its parameters.")
            return {"code": issue_code(request.login, request.code_parameters, until=ends_at(access) if access else None)}

    def add_id_token(self, members: dict[str, Any], token_handler: Any, request: Any) -> dict[str, Any]:
        """Add the id token. The engine's own leaves it out where `openid` was not granted; here the response type decides."""
        types = request.response_type.split()
        if "id_token" in types:
            beside = {name: members.get(name) for name in ("access_token", "code")}
            # FAPI 1.0 Advanced, 5.1.1: the state is tied to a response that has both.
            beside["state"] = request.state if "code" in types else None
            members["id_token"] = id_token(request.login, front_channel=beside)
        if DETAILS in (request.issue.further if "token" in types else ()):
            # RFC 9396, 7, of an answer that holds the token itself.
            members[DETAILS] = request.issue.further[DETAILS]
        return members

    def prepare_authorization_response(
        self, request: Any, token: dict[str, Any], headers: dict[str, str], body: None, status: int
    ) -> tuple[dict[str, str], dict[str, Any], int]:
        # The engine knows two response modes and makes an address of each answer; `authapi.protocols.oauth.responses` knows four.
        return headers, {name: token[name] for name in _MEMBERS if name in token}, status

    def _handle_redirects(self, request: Any) -> None:
        # `target_of` has checked the address: it may have a scheme of an application or stand for a wildcard, and a refusal is a page.
        request.redirect_uri = request.target.redirect_uri


class CodeResponse(_ResponseType, AuthorizationCodeGrant):  # type: ignore[misc]
    """Every set with `code`."""


class TokenResponse(_ResponseType, ImplicitGrant):  # type: ignore[misc]
    """`token`, `id_token`, and both."""

    response_types = ("token", "id_token")
