"""What every grant of the token endpoint shares: the engine asks for an answer, and gets the bytes that are sent."""

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
    """What the token endpoint is about to answer: everything is stored, and the access token is signed when the answer is written.

    `scopes` are named in the answer, even where there are none; None leaves the member out. `beside` has the other members by their
    names: other tokens, and the authorization details.
    """

    access: Issue
    scopes: tuple[str, ...] | None
    beside: dict[str, Any] = field(default_factory=dict, repr=False)


class TokenGrant(GrantTypeBase):  # type: ignore[misc]  # the engine has no types
    """A grant of the engine. `answer` is what each of them does in its own way."""

    name = ""
    # Whether the grant knows what to do with authorization details. Another one refuses them: ignored, they would seem to be granted.
    takes_details = False

    def answer(self, request: TokenRequest, client: Client) -> TokenAnswer:
        """Return what is to be issued, with everything stored and committed; raise `RequestRefused`."""
        raise NotImplementedError

    def create_token_response(self, request: Any, token_handler: Any) -> tuple[dict[str, str], bytes, int]:
        """Do what the engine asks of a grant: check, store, and answer through its token handler, as JSON that is written once."""
        client: Client = request.client
        if not client.allows_grant_type(self.name):
            raise RequestRefused(OAuthCase.GRANT_NOT_ALLOWED, grant=self.name)
        if DETAILS in request.token_request.form and not self.takes_details:
            raise RequestRefused(OAuthCase.INVALID_AUTHORIZATION_DETAILS, reason="This grant takes no authorization_details.")
        answer = self.answer(request.token_request, client)
        request.issue, request.extra_credentials = answer.access, answer.beside
        request.scopes = None if answer.scopes is None else list(answer.scopes)
        token = token_handler.create_token(request)
        if answer.access.confirmation:
            token["token_type"] = token_type(answer.access.confirmation)
        return {}, orjson.dumps(token), 200
