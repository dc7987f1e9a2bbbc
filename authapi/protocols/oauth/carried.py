"""How an authorization request travels: in the address, signed by its client, or pushed before. From here on it is the same request.

`received` says what a request at `/authorize` stands for. `claim` and `let_go` belong to its answer: a pushed request has one, and
so has a signed one with a `jti`.
"""

from __future__ import annotations

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.models import Client
from authapi.protocols.oauth import pushed, request_objects
from authapi.protocols.oauth.parameters import Parameters, single


def received(client: Client, parameters: Parameters) -> Parameters:
    """Return what the parameters at `/authorize` stand for. Raises `RequestRefused`, to be told to the person.

    Beside a signed or a pushed request nothing but the client counts (RFC 9101, 6.3; RFC 9126, 4). A foreign `request_uri` stays among
    the parameters, where it is refused: the service fetches no request from elsewhere.
    """
    request_uri, token = single(parameters, "request_uri"), single(parameters, "request")
    if token and not request_uri:
        return request_objects.opened(client, token)
    if not pushed.is_pushed(request_uri):
        return parameters
    if token:
        # RFC 9101, 5: one of them at most.
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The parameters request and request_uri exclude each other.")
    return pushed.found(client, request_uri)


def claim(client: Client, parameters: Parameters) -> None:
    """Note that the request is being answered now. Raises `RequestRefused` for one that has been answered before."""
    if parameters.pushed and not pushed.use_up(tenant_id=client.tenant_id, digest=parameters.pushed):
        raise RequestRefused(OAuthCase.INVALID_REQUEST_URI)
    request_objects.note_use(client, parameters.signed)


def let_go(client: Client, parameters: Parameters) -> None:
    """Note that the request was refused, whether or not it has been answered before."""
    if parameters.pushed:
        pushed.use_up(tenant_id=client.tenant_id, digest=parameters.pushed)
