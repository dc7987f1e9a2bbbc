"""`POST /oauth/token`: JSON or form, one client authentication, one grant, a freshly signed token."""

from __future__ import annotations

from authapi import client_auth, engine
from authapi.bodies import MalformedBody, parse_body
from authapi.failures import Case, RequestRefused
from authapi.token_request import TokenRequest
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from identity.tenancy import tenant_bound


def _token(call: Call) -> Answer:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(Case.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)
    engine.requested_grant(request)
    with tenant_bound(call.host.tenant_id):
        client = client_auth.authenticate(request)
        answer = engine.server().exchange(request, client)
    # RFC 6749, 5.1.
    return json_answer(answer, headers={"Cache-Control": "no-store", "Pragma": "no-cache"})


def _brings_password(body: bytes) -> bool:
    # Both grants have the word in their names, however the body is written; who else has it waits a little for nothing.
    return b"password" in body


token = hot_endpoint(_token, name="token", methods=("POST",), is_slow=_brings_password)
