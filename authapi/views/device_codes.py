"""`POST /oauth/device/code` (RFC 8628, 3.1): a device without a browser gets a device code, and a user code for its user."""

from __future__ import annotations

from authapi import client_auth
from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.models import Client
from authapi.possession.issuing import nonce_headers, with_proven_key
from authapi.possession.presented import HEADER as PROOF_HEADER
from authapi.protocols.device.codes_page import complete_address
from authapi.protocols.device.entry import PATH as ACTIVATE_PATH
from authapi.protocols.device.starting import started
from authapi.token_request import TokenRequest
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from authapi.views.client_words import echoed_headers, in_words_of_client
from foundation.tenancy import tenant_bound

PATH = "/oauth/device/code"


def _device_codes(call: Call) -> Answer:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)
    with tenant_bound(call.host.tenant_id):
        return in_words_of_client(_started, request)


def _started(request: TokenRequest) -> Answer:
    client = _client(request)
    if PROOF_HEADER in request.headers:
        request = with_proven_key(request, client, path=PATH)
    codes = started(request, client)
    headers = {"Cache-Control": "no-store", "Pragma": "no-cache", **echoed_headers(request, client)} | nonce_headers(request)
    issuer = request.host.issuer
    members = {
        "device_code": codes.device_code,
        "user_code": codes.user_code,
        "verification_uri": issuer.rstrip("/") + ACTIVATE_PATH,
        "verification_uri_complete": complete_address(issuer, codes.user_code),
        "expires_in": codes.seconds,
        "interval": codes.interval,
    }
    return json_answer(members, headers=headers)


def _client(request: TokenRequest) -> Client:
    try:
        return client_auth.authenticate(request)
    except RequestRefused as refused:
        if refused.case is not OAuthCase.WRONG_CLIENT_AUTHENTICATION:
            raise
        # RFC 8628, 3.2: the endpoint uses the errors of RFC 6749, 5.2.
        raise RequestRefused(OAuthCase.WRONG_CLIENT_OF_STANDARD) from refused


device_codes = hot_endpoint(_device_codes, name="device_code", methods=("POST",))
