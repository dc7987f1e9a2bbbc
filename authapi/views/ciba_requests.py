"""`POST /bc-authorize` (OpenID CIBA Core 1.0, 7): an authenticated client requests the approval of one user, and then polls for tokens."""

from __future__ import annotations

from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import RequestRefused
from authapi.failures.ciba import CibaCase
from authapi.failures.requests import RequestCase
from authapi.possession.issuing import nonce_headers, with_proven_key
from authapi.possession.presented import HEADER as PROOF_HEADER
from authapi.protocols.ciba.starting import started
from authapi.token_request import TokenRequest
from authapi.tokens.ciba_requests import INTERVAL
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from authapi.views.client_words import echoed_headers, in_words_of_client
from authapi.views.confidential_clients import confidential_client
from foundation.tenancy import tenant_bound

PATH = "/bc-authorize"
_FRESH = {"Cache-Control": "no-store", "Pragma": "no-cache"}


def _ciba_requests(call: Call) -> Answer:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)
    with tenant_bound(call.host.tenant_id):
        return in_words_of_client(_begun, request)


def _begun(request: TokenRequest) -> Answer:
    client = confidential_client(request, public=CibaCase.PUBLIC_CLIENT)
    if PROOF_HEADER in request.headers:
        request = with_proven_key(request, client, path=PATH)
    begun = started(request, client)
    headers = _FRESH | echoed_headers(request, client) | nonce_headers(request)
    return json_answer({"auth_req_id": begun.auth_req_id, "expires_in": begun.seconds, "interval": INTERVAL}, headers=headers)


ciba_requests = hot_endpoint(_ciba_requests, name="bc_authorize", methods=("POST",))
