"""`POST /oauth/introspect` (RFC 7662): an authenticated client asks whether a token is valid now, and gets its claims."""

from __future__ import annotations

from authapi.edge.bodies import MalformedBody, parse_body
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.tenant_settings import sign_in_settings
from authapi.token_request import TokenRequest
from authapi.tokens.introspection import introspected
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from authapi.views.client_words import echoed_headers, in_words_of_client
from authapi.views.confidential_clients import confidential_client
from foundation.tenancy import tenant_bound

PATH = "/oauth/introspect"
_FRESH = {"Cache-Control": "no-store", "Pragma": "no-cache"}


def _introspect(call: Call) -> Answer:
    try:
        form = parse_body(call.headers.get("content-type", ""), call.body)
    except MalformedBody as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error
    request = TokenRequest(host=call.host, address=call.address, headers=call.headers, form=form, charge=call.charge)
    with tenant_bound(call.host.tenant_id):
        return in_words_of_client(_introspected, request)


def _introspected(request: TokenRequest) -> Answer:
    if not sign_in_settings(request.host.tenant_id).introspects_tokens:
        raise RequestRefused(OAuthCase.INTROSPECTION_DISABLED)
    # RFC 7662, 4: without authentication, an attacker could try out tokens.
    client = confidential_client(request, public=OAuthCase.INTROSPECTION_BY_PUBLIC_CLIENT)
    # The parameter `token_type_hint` has no effect (RFC 7662, 2.1): the token itself shows its kind.
    members = introspected(request.required("token"), client=client, host=request.host)
    return json_answer(members, headers=_FRESH | echoed_headers(request, client))


introspection = hot_endpoint(_introspect, name="introspect", methods=("POST",))
