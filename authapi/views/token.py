"""`POST /oauth/token`: JSON or form, one client authentication, one grant, a freshly signed token."""

from __future__ import annotations

from functools import partial

from authapi import client_auth
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from authapi.possession.issuing import nonce_headers, with_proven_key
from authapi.possession.presented import HEADER as PROOF_HEADER
from authapi.protocols.oauth import engine
from authapi.protocols.oauth.engine import PASSWORD_GRANTS
from authapi.token_request import TokenRequest
from authapi.views.chain import Answer, Call, Later, hot_endpoint
from foundation.tenancy import tenant_bound

PATH = "/oauth/token"


def _token(call: Call) -> Answer | Later:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)
    # Decided by what was read and not by the bytes: a name can be written in many ways.
    if engine.requested_grant(request) in PASSWORD_GRANTS:
        return Later(partial(_exchanged, request))
    return _exchanged(request)


def _exchanged(request: TokenRequest) -> Answer:
    with tenant_bound(request.host.tenant_id):
        client = client_auth.authenticate(request)
        if PROOF_HEADER in request.headers:
            request = with_proven_key(request, client, path=PATH)
        body = engine.server().exchange(request, client)
        # RFC 6749, 5.1.
        headers = {"Cache-Control": "no-store", "Pragma": "no-cache"}
        return Answer(200, body, headers | nonce_headers(request) if request.key else headers)


token = hot_endpoint(_token, name="token", methods=("POST",))
