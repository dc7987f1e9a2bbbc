"""`/logout`: logout messages of SAML providers, in both directions (SAML Profiles 2.0, 4.4)."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, QueryDict

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase
from authapi.login import round_trips
from authapi.login.browser import address_of, user_agent_of
from authapi.login.cookies import SESSION, read_cookie
from authapi.login.protocol import BrowserCall
from authapi.login.session_state import forget_session
from authapi.login.sessions import end_session, find_session
from authapi.models import Initiator, Session
from authapi.pages.application_link import application_link
from authapi.pages.hosted_page import hosted_page
from authapi.pages.provider_login import note_refusal
from authapi.pages.tenant_page import tenant_page
from authapi.services import sign_in_log
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.logout import answers_to, check_answer, demand_of, demanded_sessions
from authapi.upstream.saml.logouts import Sent
from authapi.upstream.saml.options import STRATEGIES
from authapi.xml.bindings import REQUEST, RESPONSE
from identity.hosts import HostMatch
from identity.models import Connection

_MEMBERS = (REQUEST, RESPONSE, "RelayState")


@tenant_page("provider_logout")
def provider_logout(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """End the sessions that a provider names in a logout request, or continue a logout that a provider has answered."""
    sent = _sent(request)
    if RESPONSE in sent.parameters:
        return _answered(request, host, sent)
    if REQUEST not in sent.parameters:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter=REQUEST)
    return _demanded(request, host, sent)


def _sent(request: HttpRequest) -> Sent:
    is_posted = request.method == "POST"
    values: QueryDict = request.POST if is_posted else request.GET
    repeated = next((name for name in _MEMBERS if len(values.getlist(name)) > 1), None)
    if repeated is not None:
        raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=repeated)
    found = {name: str(values[name]) for name in _MEMBERS if name in values}
    return Sent(found, None if is_posted else request.META.get("QUERY_STRING", ""))


def _answered(request: HttpRequest, host: HostMatch, sent: Sent) -> HttpResponse:
    """Continue a logout of this service. An answer that fails the checks is treated as a failed logout at the provider."""
    handle = sent.parameters.get("RelayState", "")
    expected = round_trips.expected(host, handle).state
    connection = Connection.objects.of(host.tenant_id).filter(pk=str(expected.get("connection", ""))).first()
    if connection is None:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    try:
        check_answer(connection, sent, base=host.issuer, request_id=str(expected["request_id"]))
        is_told = True
    except UpstreamFailed as refused:
        note_refusal(request, host, refused, connection=connection)
        is_told = False
    return round_trips.go_on(request, host, handle, is_told=is_told)


def _demanded(request: HttpRequest, host: HostMatch, sent: Sent) -> HttpResponse:
    """End the sessions that the request of the provider names, in this browser and in other browsers.

    If the session of this browser ends, the browser visits the participants of the session. At the end, the provider gets an answer if the
    options of the connection contain a URL for answers. A browser without a session is no error: the session may have ended already.
    """
    connection = Connection.objects.of(host.tenant_id).filter(name=request.GET.get("connection", "")[:128], strategy__in=STRATEGIES).first()
    if connection is None:
        raise RequestRefused(LoginCase.UNKNOWN_CONNECTION)
    try:
        demand = demand_of(connection, sent, base=host.issuer)
        answers = answers_to(connection, demand, relay_state=sent.parameters.get("RelayState", ""))
        sessions = demanded_sessions(connection, demand)
    except UpstreamFailed as refused:
        note_refusal(request, host, refused, connection=connection)
        raise
    own = find_session(tenant_id=host.tenant_id, cookie=read_cookie(request, SESSION))
    for session in sessions:
        if own is None or session.pk != own.pk:
            end_session(session, reason=Initiator.IDP_LOGOUT)
        _note(request, host, session)
    then, otherwise = answers or (BrowserCall(f"{host.issuer}u/logged-out"), None)
    first = None
    if own is not None and any(session.pk == own.pk for session in sessions):
        first = round_trips.begin(own, reason=Initiator.IDP_LOGOUT, then=then, otherwise=otherwise)
    if first is None and answers is None:
        answer = hosted_page(request, host, "logout", {"is_done": True, "application": application_link(None, host=host)})
    else:
        answer = round_trips.send(request, first or then)
    if own is not None and any(session.pk == own.pk for session in sessions):
        forget_session(request, answer)
    return answer


def _note(request: HttpRequest, host: HostMatch, session: Session) -> None:
    sign_in_log.note(
        tenant_id=host.tenant_id,
        type="slo",
        is_success=True,
        user=session.user,
        connection=session.connection.name,
        ip=address_of(request),
        user_agent=user_agent_of(request),
        details={"initiator": str(Initiator.IDP_LOGOUT)},
    )
