"""`GET /passwordless/verify_redirect`: an application redirects the browser to this URL, with a typed code (contract 2.5).

Any site can redirect a browser to this endpoint with an attacker's address (email or phone) and code. So the user must confirm the login on
a page.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from authapi.accounts.passwordless.addresses import AddressOdd, Channel, channel_of, read_address
from authapi.accounts.passwordless.connections import named_passwordless
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.passwordless import PasswordlessCase
from authapi.failures.requests import RequestCase
from authapi.login import flow
from authapi.login.login import Login, new_login
from authapi.login.protocol import ProtocolRequest
from authapi.pages.passwordless_link import ask_about_code
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.oauth.entry import OAUTH
from authapi.protocols.oauth.parameters import read, single
from authapi.protocols.oauth.sent import sent_pairs
from authapi.protocols.oauth.views.authorize import requested_client, without_legacy_members
from identity.hosts import HostMatch
from identity.models import Connection

PATH = "passwordless/verify_redirect"
_OWN = ("verification_code", "email", "phone_number")
_FIELDS = {Channel.EMAIL: "email", Channel.SMS: "phone_number"}


@tenant_page("passwordless_verify_redirect", methods=("GET",))
def verify_redirect(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Check the request as `/authorize` does, and redirect to the page on which the user confirms the login. That page uses up the code."""
    parameters = read(sent_pairs(request))
    if parameters.repeated:
        raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=min(parameters.repeated)[:100])
    client = requested_client(host, single(parameters, "client_id"))
    connection = named_passwordless(client, parameters.get("connection"))
    state = {name: value for name, value in without_legacy_members(parameters.values).items() if name not in _OWN}
    if connection is not None:
        # Client libraries send the strategy of the connection. All later steps use the name of the connection.
        state["connection"] = connection.name
    state.setdefault("response_type", "code")
    login = new_login(request, OAUTH, ProtocolRequest(host, client, state))
    try:
        login.check()
        if request.method == "HEAD":
            return HttpResponse(headers={"Cache-Control": "no-store"})
        return _asking(login, connection, parameters.values)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _asking(login: Login, connection: Connection | None, sent: Mapping[str, str]) -> HttpResponse:
    channel = channel_of(connection) if connection is not None else None
    if connection is None or channel is None:
        raise RequestRefused(LoginCase.UNKNOWN_CONNECTION)
    field = _FIELDS[channel]
    for name in (field, "verification_code"):
        if name not in sent:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter=name)
    try:
        address = read_address(channel, sent[field])
    except AddressOdd as error:
        raise RequestRefused(PasswordlessCase.WRONG_REDIRECTED_CODE) from error
    return ask_about_code(login, connection, address, sent["verification_code"])
