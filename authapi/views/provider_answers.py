"""`/login/callback`: the URL to which external providers return the browser, with an answer in their protocol."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from django.http import HttpRequest, HttpResponse, QueryDict

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase
from authapi.login.browser import post_form
from authapi.login.cookies import BROWSER, read_cookie
from authapi.login.login import Login, kept_login, new_login
from authapi.login.protocol import ProtocolRequest, protocol_named
from authapi.models import Client
from authapi.pages.connection_test import finish_test
from authapi.pages.oidc_callback import POSTED_AGAIN, oidc_callback
from authapi.pages.provider_clean_up import provider_clean_up
from authapi.pages.provider_login import Evidence, answered_request, finish, note_refusal
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.legacy import ticket_login
from authapi.protocols.oauth.entry import OAUTH
from authapi.protocols.oauth.parameters import read
from authapi.protocols.saml.entry import SamlLogin
from authapi.protocols.saml.requests import AuthnRequest
from authapi.protocols.wsfed.requests import client_sign_in
from authapi.upstream.authentication_requests import request_for
from authapi.upstream.connection_tests import is_test
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml import login as saml_login
from authapi.upstream.saml.connections import options_of
from authapi.upstream.saml.options import STRATEGIES, ClientProtocol, IdpInitiated
from authapi.upstream.saml.responses import request_id_of
from authapi.upstream.saml.showing import shown_message
from authapi.upstream.wsfed import login as wsfed_login
from identity.hosts import HostMatch
from identity.models import Connection

_SAML, _WSFED = "SAMLResponse", "wresult"
_MEMBERS = (_SAML, "RelayState", _WSFED, "wctx", "wa")
# The `wa` values with which a WS-Federation provider requests that the login in this browser ends.
_CLEAN_UPS = ("wsignoutcleanup1.0", "wsignout1.0")


@tenant_page("login_callback")
def login_callback(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Finish a login at a provider and continue the client's request. If the login fails, the client gets an error."""
    if request.method == "GET" and request.GET.get("wa") in _CLEAN_UPS:
        return provider_clean_up(request, host)
    if request.method != "POST" or (_SAML not in request.POST and _WSFED not in request.POST):
        return oidc_callback(request, host)
    if ticket_login.is_own_answer(request):
        return ticket_login.go_on_from_form(request, host, OAUTH)
    return _posted(request, host)


def _posted(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Handle a posted message of a SAML or WS-Federation provider."""
    sent = _single(request.POST)
    state = sent.get("RelayState" if _SAML in sent else "wctx", "")
    if is_test(state):
        return finish_test(request, host, state, sent, address=address_of_callback(request, host))
    if request_for(host.tenant_id, state) is None:
        if _SAML not in sent:
            raise RequestRefused(LoginCase.REQUEST_EXPIRED)
        return _unasked(request, host, sent)
    if not read_cookie(request, BROWSER) and POSTED_AGAIN not in request.POST:
        # Without TLS, browsers do not send the cookie of this service with a form that another site posts. So answer with a page of this
        # host that posts the same form again.
        return post_form(request, address_of_callback(request, host), {**sent, POSTED_AGAIN: "1"})
    row, asked = answered_request(request, host, state)
    if _SAML in sent:
        answer = _answer(request, host, sent)
        evidence = Evidence(lambda connection: saml_login.proven(connection, asked, answer), lambda: shown_message(answer.raw))
    else:
        result = sent[_WSFED]
        evidence = Evidence(lambda connection: wsfed_login.proven(connection, asked, result), lambda: shown_message(result.encode()))
    return finish(kept_login(request, host, row), asked.connection_id, evidence)


def address_of_callback(request: HttpRequest, host: HostMatch) -> str:
    """Return the public URL that the browser has posted to."""
    query = request.META.get("QUERY_STRING", "")
    return f"{host.issuer}{saml_login.CALLBACK_PATH}{f'?{query}' if query else ''}"


def _single(values: QueryDict) -> dict[str, str]:
    """Return the members of an answer. Raises `RequestRefused` for a repeated member, which two parsers could read differently."""
    repeated = next((name for name in _MEMBERS if len(values.getlist(name)) > 1), None)
    if repeated is not None:
        raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=repeated)
    return {name: str(values[name]) for name in _MEMBERS if name in values}


def _answer(request: HttpRequest, host: HostMatch, sent: Mapping[str, str]) -> saml_login.SamlAnswer:
    return saml_login.SamlAnswer(sent[_SAML], address_of_callback(request, host))


def _unasked(request: HttpRequest, host: HostMatch, sent: Mapping[str, str]) -> HttpResponse:
    """Log in a user whose login the provider began, if the connection allows it (SAML Profiles 2.0, 4.1.5).

    By default, connections do not allow it: any page can make a browser post an assertion, so an attacker could log a user in to the
    attacker's account.
    """
    connection = _connection(host, request.GET.get("connection", ""))
    answer = _answer(request, host, sent)
    try:
        if connection is None or request_id_of(answer.raw):
            # The answer belongs to a request that has ended, or that another browser began.
            raise RequestRefused(LoginCase.REQUEST_EXPIRED)
        initiated = options_of(connection).idp_initiated
        if initiated is None:
            raise UpstreamFailed(
                LoginCase.UPSTREAM_UNASKED,
                "Switch idpinitiated on at the connection to allow such logins, or begin the login at the application.",
            )
        login = _begun(request, host, connection, initiated, sent)
    except RequestRefused as refused:
        note_refusal(request, host, refused, connection=connection, shown=lambda: shown_message(answer.raw))
        raise
    callback = host.issuer + saml_login.CALLBACK_PATH
    evidence = Evidence(lambda found: saml_login.proven_unasked(found, answer, callback=callback), lambda: shown_message(answer.raw))
    return finish(login, connection.pk, evidence)


def _connection(host: HostMatch, name: str) -> Connection | None:
    found = Connection.objects.of(host.tenant_id).filter(name=name[:128]).first()
    return found if found is not None and found.strategy in STRATEGIES else None


def _begun(request: HttpRequest, host: HostMatch, connection: Connection, initiated: IdpInitiated, sent: Mapping[str, str]) -> Login:
    """Return a login at the application of the connection, as if the application had requested it. Raises `RequestRefused`."""
    client = Client.objects.of(host.tenant_id).filter(client_id=initiated.client_id, revoked_at=None).first()
    if client is None:
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name}: idpinitiated.client_id names no application.")
    organization = request.GET.get("organization", "")
    if initiated.protocol is ClientProtocol.SAML:
        relay_state = dict(parse_qsl(initiated.query)).get("RelayState", "")
        asked = SamlLogin(AuthnRequest(relay_state=relay_state), connection=connection.name, organization=organization)
        name, state = "samlp", asked.state()
    elif initiated.protocol is ClientProtocol.WSFED:
        name = "wsfed"
        callbacks = tuple(client.redirect_uris.split())
        asked_by_wsfed = client_sign_in(
            client.client_id, callbacks, dict(parse_qsl(initiated.query)), connection=connection.name, organization=organization
        )
        state = asked_by_wsfed.state()
    else:
        fixed = {"client_id": client.client_id, "connection": connection.name, **({"organization": organization} if organization else {})}
        name = "oauth"
        state = read([*{"response_type": "code", **dict(parse_qsl(initiated.query)), **fixed}.items()]).state
    login = new_login(request, protocol_named(name), ProtocolRequest(host, client, state))
    login.check()
    return login
