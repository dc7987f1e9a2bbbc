"""What every grant of the token endpoint shares: the engine asks for an answer, and gets the bytes that are sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson
from oauthlib.oauth2.rfc6749.grant_types.base import GrantTypeBase

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.minting import Issue


@dataclass(frozen=True)
class Decision:
    """What a grant has decided and stored. The access token is signed afterwards; `beside` are the other tokens of the answer.

    `scopes` are named in the answer, even if there are none; None leaves the member out.
    """

    access: Issue
    scopes: tuple[str, ...] | None
    beside: dict[str, str] = field(default_factory=dict, repr=False)


class TokenGrant(GrantTypeBase):  # type: ignore[misc]  # the engine has no types
    """A grant of the engine. `decided` is what each of them does in its own way."""

    name = ""

    def decided(self, request: TokenRequest, client: Client) -> Decision:
        """Return what is to be issued, with everything stored and committed; raise `RequestRefused`."""
        raise NotImplementedError

    def create_token_response(self, request: Any, token_handler: Any) -> tuple[dict[str, str], bytes, int]:
        """Do what the engine asks of a grant: check, store, and answer through its token handler, as JSON that is written once."""
        client: Client = request.client
        if not client.allows_grant_type(self.name):
            raise RequestRefused(OAuthCase.GRANT_NOT_ALLOWED, grant=self.name)
        decision = self.decided(request.token_request, client)
        request.issue, request.extra_credentials = decision.access, decision.beside
        request.scopes = None if decision.scopes is None else list(decision.scopes)
        return {}, orjson.dumps(token_handler.create_token(request)), 200
