"""`POST /oauth/token`: authenticates the client, runs one grant, and answers with a newly signed token. The body is JSON or a form."""

from __future__ import annotations

from functools import partial

from authapi import client_auth
from authapi.possession.issuing import nonce_headers, with_proven_key
from authapi.possession.presented import HEADER as PROOF_HEADER
from authapi.protocols.oauth import engine
from authapi.token_request import TokenRequest
from authapi.views.chain import Answer, Call, Later, hot_endpoint
from authapi.views.client_words import echoed_headers, in_words_of_client
from authapi.views.token_at_once import FRESH, PATH, token_at_once, token_request
from foundation.tenancy import tenant_bound


def _token(call: Call) -> Answer | Later:
    request = token_request(call)
    # Examine the parsed parameters, not the bytes of the body, because the name of a grant has several encodings.
    if engine.is_slow(request):
        return Later(partial(_exchanged, request))
    return _exchanged(request)


def _exchanged(request: TokenRequest) -> Answer:
    with tenant_bound(request.host.tenant_id):
        return in_words_of_client(_issued, request)


def _issued(request: TokenRequest) -> Answer:
    client = client_auth.authenticate(request)
    if PROOF_HEADER in request.headers:
        request = with_proven_key(request, client, path=PATH)
    body = engine.server().exchange(request, client)
    headers = FRESH | echoed_headers(request, client)
    return Answer(200, body, headers | nonce_headers(request) if request.key else headers)


token = hot_endpoint(_token, name="token", methods=("POST",), at_once=token_at_once)
