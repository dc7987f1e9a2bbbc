"""`/authorize` (RFC 6749, 3.1; OpenID Connect Core 1.0, 3.1.2): the way in for browsers."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.client_auth import clients
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase
from authapi.login import flow
from authapi.login.protocol import ProtocolRequest
from authapi.models import Client
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.oauth.carried import received
from authapi.protocols.oauth.entry import OAUTH, facts_of, respond_refused
from authapi.protocols.oauth.parameters import read, single, target_of
from authapi.protocols.oauth.sent import sent_pairs
from identity.hosts import HostMatch


@tenant_page("authorize")
def authorize(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Answer the client, or lead to the page that is due."""
    parameters = read(sent_pairs(request))
    client = requested_client(host, single(parameters, "client_id"))
    if parameters.repeated:
        name, target = min(parameters.repeated), target_of(parameters, facts_of(client))
        return respond_refused(request, host, target, RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=name[:100]))
    return flow.begin(request, OAUTH, ProtocolRequest(host, client, received(client, parameters).state))


def requested_client(host: HostMatch, client_id: str) -> Client:
    """Return the client that a browser names. Raises `RequestRefused`, told to the person: no address is trusted yet."""
    if not client_id:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="client_id")
    try:
        client = clients.get((host.tenant_id, client_id[:64]))
    except Client.DoesNotExist as error:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=client_id[:64]) from error
    if client.revoked_at is not None or client.client_id != client_id:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=client_id[:64])
    return client
