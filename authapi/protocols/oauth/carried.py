"""The three ways in which a client sends an authorization request: in the URL, as a signed request object, or pushed before.

`received` returns the parameters of a request at `/authorize`. The function that answers the client calls `claim` for a success and
`let_go` for a refusal. A pushed request, or a signed request with a `jti`, is answered with a success at most once.
"""

from __future__ import annotations

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.models import Client
from authapi.protocols.oauth import pushed, request_objects
from authapi.protocols.oauth.parameters import Parameters, single


def received(client: Client, parameters: Parameters) -> Parameters:
    """Return the parameters of a request at `/authorize`. Raises `RequestRefused`, to be shown to the user.

    With a signed or a pushed request, all other parameters except `client_id` are ignored (RFC 9101, 6.3; RFC 9126, 4). A
    `request_uri` of another service stays among the parameters and is refused later: this service fetches no external requests.
    """
    request_uri, token = single(parameters, "request_uri"), single(parameters, "request")
    if token and not request_uri:
        return request_objects.opened(client, token)
    if not pushed.is_pushed(request_uri):
        return parameters
    if token:
        # RFC 9101, 5: at most one of `request` and `request_uri`.
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="Send only one of the parameters request and request_uri.")
    return pushed.found(client, request_uri)


def claim(client: Client, parameters: Parameters) -> None:
    """Record that the request is answered with a success now. Raises `RequestRefused` for a request that was answered before."""
    if parameters.pushed and not pushed.use_up(tenant_id=client.tenant_id, digest=parameters.pushed):
        raise RequestRefused(OAuthCase.INVALID_REQUEST_URI)
    request_objects.note_use(client, parameters.signed)


def let_go(client: Client, parameters: Parameters) -> None:
    """Use up a pushed request after its refusal. Does nothing if it is used up already. The `jti` of a signed request stays valid."""
    if parameters.pushed:
        pushed.use_up(tenant_id=client.tenant_id, digest=parameters.pushed)
