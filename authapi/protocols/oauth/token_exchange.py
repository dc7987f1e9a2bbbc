"""`urn:ietf:params:oauth:grant-type:token-exchange` (RFC 8693). The type of the subject token selects the kind of exchange."""

from __future__ import annotations

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.grants.exchange.on_behalf_of import on_behalf_of
from authapi.grants.exchange.own_tokens import ACCESS_TOKEN, OWN_TYPES
from authapi.grants.token_grant import TokenAnswer, TokenGrant
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.upstream.subject_tokens import logged_in_by_token


class TokenExchangeGrant(TokenGrant):
    """Exchanges two kinds of tokens. An API that received an access token of this service gets a token for another API. For a token of an
    external issuer, a client gets the tokens of a user."""

    name = "urn:ietf:params:oauth:grant-type:token-exchange"

    def answer(self, request: TokenRequest, client: Client) -> TokenAnswer:
        kind = request.required("subject_token_type")
        request.required("subject_token")
        wanted = request.text("requested_token_type")
        if wanted not in (None, ACCESS_TOKEN):
            raise RequestRefused(OAuthCase.TOKEN_TYPE_NOT_SUPPORTED, parameter="requested_token_type", type=str(wanted)[:100])
        return on_behalf_of(request, client) if kind in OWN_TYPES else logged_in_by_token(request, client, kind)


def asks_elsewhere(request: TokenRequest) -> bool:
    """Tell whether the keys of an external issuer may have to be fetched. Raises `RequestRefused`."""
    return request.text("subject_token_type") not in OWN_TYPES
