"""`POST /oauth/par` (RFC 9126): an authenticated client stores its authorization request and gets a handle for the browser."""

from __future__ import annotations

from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.possession.issuing import nonce_headers, with_proven_key
from authapi.possession.presented import HEADER as PROOF_HEADER
from authapi.protocols.oauth.pushed import push
from authapi.protocols.oauth.pushing import accepted
from authapi.tenant_settings import sign_in_settings
from authapi.token_request import TokenRequest
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from authapi.views.client_words import echoed_headers, in_words_of_client
from authapi.views.confidential_clients import confidential_client
from foundation.tenancy import tenant_bound

PATH = "/oauth/par"
# Contract, 2.11.
MAX_BYTES = 10 * 1024
_FRESH = {"Cache-Control": "no-store", "Pragma": "no-cache"}


def _pushed(call: Call) -> Answer:
    if len(call.body) > MAX_BYTES:
        raise RequestRefused(RequestCase.BODY_TOO_LARGE, limit=MAX_BYTES)
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)
    with tenant_bound(call.host.tenant_id):
        return in_words_of_client(_kept, request)


def _kept(request: TokenRequest) -> Answer:
    if not sign_in_settings(request.host.tenant_id).takes_pushed_requests:
        raise RequestRefused(OAuthCase.PUSH_DISABLED)
    client = confidential_client(request, public=OAuthCase.PUSH_BY_PUBLIC_CLIENT)
    if PROOF_HEADER in request.headers:
        request = with_proven_key(request, client, path=PATH)
    pushed = push(client, accepted(request, client))
    headers = _FRESH | echoed_headers(request, client) | nonce_headers(request)
    return json_answer({"request_uri": pushed.request_uri, "expires_in": pushed.seconds}, status=201, headers=headers)


pushed_requests = hot_endpoint(_pushed, name="par", methods=("POST",))
