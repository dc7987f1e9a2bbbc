"""`/authorize` (RFC 6749, 3.1; OpenID Connect Core 1.0, 3.1.2): where browsers begin a login."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from authapi.client_auth import clients
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase
from authapi.login import flow
from authapi.login.protocol import ProtocolRequest
from authapi.models import Client
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.legacy import account_links, ticket_login
from authapi.protocols.oauth.carried import received
from authapi.protocols.oauth.checks import refusal_of_repeated
from authapi.protocols.oauth.entry import OAUTH, facts_of, respond_refused
from authapi.protocols.oauth.parameters import Parameters, read, single, target_of
from authapi.protocols.oauth.sent import sent_pairs
from identity.hosts import HostMatch

_LOOKED_AT_HERE = frozenset({ticket_login.PARAMETER, account_links.PARAMETER})


@tenant_page("authorize")
def authorize(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Answer the client, or redirect to the next page of the login."""
    parameters = read(sent_pairs(request))
    client = requested_client(host, single(parameters, "client_id"))
    if refused := _repeated(client, parameters):
        return respond_refused(request, ProtocolRequest(host, client, {}), target_of(parameters, facts_of(client)), refused)
    carried = received(client, parameters)
    if refused := _repeated(client, carried):
        return respond_refused(request, ProtocolRequest(host, client, {}), target_of(carried, facts_of(client)), refused)
    asked = ProtocolRequest(host, client, without_legacy_members(carried.state))
    if carried is not parameters:
        # A signed or pushed request is complete, so a ticket or a token beside the request is ignored.
        return flow.begin(request, OAUTH, asked)
    if ticket := parameters.get(ticket_login.PARAMETER):
        return ticket_login.authorize(request, OAUTH, asked, ticket)
    if token := parameters.get(account_links.PARAMETER):
        return account_links.authorize(request, OAUTH, asked, token)
    return flow.begin(request, OAUTH, asked)


def _repeated(client: Client, parameters: Parameters) -> RequestRefused | None:
    if not parameters.repeated:
        return None
    return refusal_of_repeated(parameters.repeated, facts_of(client), has_audience=bool(parameters.audience))


def without_legacy_members(values: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of the parameters that lacks `login_ticket` and `access_token`.

    This view itself uses both parameters; a stored request must not contain them.
    """
    return {name: value for name, value in values.items() if name not in _LOOKED_AT_HERE}


def requested_client(host: HostMatch, client_id: str) -> Client:
    """Return the client that a browser names.

    Raises `RequestRefused`, which is shown to the user, because no redirect URL is trusted yet.
    """
    if not client_id:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="client_id")
    try:
        client = clients.get((host.tenant_id, client_id[:64]))
    except Client.DoesNotExist as error:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=client_id[:64]) from error
    if client.revoked_at is not None or client.client_id != client_id:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=client_id[:64])
    return client
