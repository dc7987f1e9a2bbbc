"""The part that all grants of the token endpoint share: it returns the encoded response to the OAuth engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson
from oauthlib.oauth2.rfc6749.grant_types.base import GrantTypeBase

from authapi.details.types import MEMBER as DETAILS
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import token_type
from authapi.tokens.minting import Issue


@dataclass(frozen=True)
class TokenAnswer:
    """The answer of the token endpoint before it is encoded. All rows are already stored; the access token is signed when the answer is
    encoded.

    The answer contains `scopes`, even if empty; None omits the member. `beside` has the other members by name: tokens and details.
    """

    access: Issue
    scopes: tuple[str, ...] | None
    beside: dict[str, Any] = field(default_factory=dict, repr=False)


class TokenGrant(GrantTypeBase):  # type: ignore[misc]  # the engine has no types
    """A grant of the OAuth engine. Each grant implements `answer`."""

    name = ""
    # Whether the grant handles authorization details. If it does not, it refuses a request with details: if it ignored them, the client
    # would assume that they apply.
    takes_details = False

    def answer(self, request: TokenRequest, client: Client) -> TokenAnswer:
        """Return what to issue, after all rows are stored and committed. Raises `RequestRefused`."""
        raise NotImplementedError

    def create_token_response(self, request: Any, token_handler: Any) -> tuple[dict[str, str], bytes, int]:
        """Answer a request of the engine: check and store, then call the engine's token handler, which encodes the answer as JSON."""
        client: Client = request.client
        if not client.allows_grant_type(self.name):
            raise RequestRefused(OAuthCase.GRANT_NOT_ALLOWED, grant=self.name)
        if DETAILS in request.token_request.form and not self.takes_details:
            raise RequestRefused(OAuthCase.INVALID_AUTHORIZATION_DETAILS, reason="This grant does not accept authorization_details.")
        answer = self.answer(request.token_request, client)
        request.issue, request.extra_credentials = answer.access, answer.beside
        request.scopes = None if answer.scopes is None else list(answer.scopes)
        token = token_handler.create_token(request)
        if answer.access.confirmation:
            token["token_type"] = token_type(answer.access.confirmation)
        return {}, orjson.dumps(token), 200
