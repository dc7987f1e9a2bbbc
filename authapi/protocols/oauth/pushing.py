"""Accepts pushed requests. All checks run before a request is stored, so that the client gets a refusal as the answer to its push."""

from __future__ import annotations

from dataclasses import replace

from authapi.client_auth import AUTHENTICATION_PARAMETERS
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.login.protocol import ProtocolRequest
from authapi.models import Client
from authapi.protocols.oauth import request_objects
from authapi.protocols.oauth.entry import OAUTH, facts_of
from authapi.protocols.oauth.parameters import Parameters, checked, read, target_of
from authapi.protocols.oauth.sent import text_pairs
from authapi.token_request import TokenRequest

# Contract, 2.11: prefix of parameters for the client's own use.
_EXTENSION = "ext-"
MOST_EXTENSIONS = 10
# Placeholder for the digest, which does not exist before the request is stored.
_NOT_YET = "-"


def accepted(request: TokenRequest, client: Client) -> Parameters:
    """Return the parameters that an authenticated client has pushed, after the same checks as at `/authorize`. Raises `RequestRefused`."""
    pairs = [pair for pair in text_pairs(request.form) if pair[0] not in AUTHENTICATION_PARAMETERS]
    if request.text("request_uri") is not None:
        # RFC 9126, 2.1.
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The parameter request_uri cannot be pushed.")
    if sum(name.startswith(_EXTENSION) for name, _ in pairs) > MOST_EXTENSIONS:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"At most {MOST_EXTENSIONS} parameters may begin with {_EXTENSION}.")
    token = request.text("request")
    if token is not None:
        # RFC 9126, 3. As at `/authorize`, other parameters are ignored.
        return _signed(request, client, token)
    parameters = read([("client_id", client.client_id), *(pair for pair in pairs if pair[0] != "client_id")])
    parameters = _with_key(request, parameters)
    _check(request, client, parameters)
    return parameters


def _with_key(request: TokenRequest, parameters: Parameters) -> Parameters:
    """Bind the code to the key of the DPoP proof (RFC 9449, 10.1). Raises `RequestRefused` if `dpop_jkt` names a different key."""
    if not request.key:
        return parameters
    if parameters.get("dpop_jkt") not in ("", request.key):
        raise RequestRefused(OAuthCase.INVALID_DPOP_PROOF, reason="The dpop_jkt does not name the key of the DPoP proof.")
    return replace(parameters, values={**parameters.values, "dpop_jkt": request.key})


def _signed(request: TokenRequest, client: Client, token: str) -> Parameters:
    """Return the parameters of a signed request. Records the use of the request now.

    At `/authorize`, the use is recorded later, with the answer, because the user may reload the page. A pushed request is never reloaded.
    """
    parameters = _with_key(request, request_objects.opened(client, token))
    _check(request, client, parameters)
    request_objects.note_use(client, parameters.signed)
    return request_objects.without_use(parameters)


def _check(request: TokenRequest, client: Client, parameters: Parameters) -> None:
    facts = facts_of(client)
    pushed = replace(parameters, pushed=_NOT_YET)
    checked(pushed, facts, target_of(pushed, facts))
    # This check runs before the user is known. So it refuses an API only if there is no user for whom the client may use it.
    OAUTH.terms(ProtocolRequest(request.host, client, pushed.state), None, None)
