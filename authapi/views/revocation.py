"""`POST /oauth/revoke` (RFC 7009): a client revokes an access token, or a refresh token with all tokens of its lineage."""

from __future__ import annotations

from dataclasses import replace

from authapi.client_auth import named_client
from authapi.compliance.enforcing import INTERACTION_HEADER
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.protocols.oauth.engine import server
from authapi.token_request import TokenRequest
from authapi.views.chain import Answer, Call, hot_endpoint
from authapi.views.client_words import echoed_headers, in_words_of_client
from foundation.tenancy import tenant_bound

_EMPTY = Answer(200, b"", {"Content-Type": "application/json", "Cache-Control": "no-store", "Pragma": "no-cache"})


def _revoke(call: Call) -> Answer:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)
    with tenant_bound(call.host.tenant_id):
        return in_words_of_client(_revoked, request)


def _revoked(request: TokenRequest) -> Answer:
    is_own = _is_own(request)
    client = named_client(request) if INTERACTION_HEADER in request.headers else None
    answer = replace(_EMPTY, headers=_EMPTY.headers | echoed_headers(request, client)) if client else _EMPTY
    # RFC 7009, 2.2: an unknown token, or a token of another client, gets the answer of a revoked token. A public client proves nothing with
    # such a request, so the request is charged to the IP address. A confidential client was charged when it authenticated.
    return answer if is_own else replace(answer, is_proof=False)


def _is_own(request: TokenRequest) -> bool:
    try:
        return server().revoke(request)
    except RequestRefused as refused:
        if refused.case is not OAuthCase.WRONG_CLIENT_AUTHENTICATION:
            raise
        # If the authentication fails, this endpoint answers with the error code of RFC 7009, 2.2.1: `invalid_client`.
        raise RequestRefused(OAuthCase.WRONG_CLIENT_OF_STANDARD) from refused


revocation = hot_endpoint(_revoke, name="revoke", methods=("POST",))
