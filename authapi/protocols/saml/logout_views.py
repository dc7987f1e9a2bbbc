"""`/samlp/{client}/logout`: an application ends the login at all applications, or answers a logout request of this service."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase
from authapi.failures.saml import SamlCase
from authapi.login import round_trips
from authapi.login.browser import address_of, user_agent_of
from authapi.login.cookies import SESSION, read_cookie
from authapi.login.protocol import BrowserCall, Participant
from authapi.login.session_state import forget_session
from authapi.login.sessions import drop_client, find_session, participant
from authapi.models import Client, Initiator, Session
from authapi.protocols.saml.addresses import entity_id, logout_address
from authapi.protocols.saml.entry import NAME, client_settings, handle_of, message_call, new_id, signer_of
from authapi.protocols.saml.logout import (
    PARTLY,
    LogoutRequest,
    Participation,
    logout_response,
    read_logout_answer,
    read_logout_request,
)
from authapi.protocols.saml.names import REQUEST_DENIED, REQUESTER, SUCCESS, UNKNOWN_PRINCIPAL
from authapi.protocols.saml.requests import RequestUnusable, Sent
from authapi.protocols.saml.settings import SamlSettings
from authapi.protocols.saml.views import client_of, note_refused, sent_message
from authapi.services import sign_in_log
from authapi.xml.bindings import REQUEST, RESPONSE
from identity.hosts import HostMatch


def single_logout(request: HttpRequest, host: HostMatch, client_id: str) -> HttpResponse:
    """Process a message of an application, in either binding: a logout request, or the answer to a request of this service."""
    sent = sent_message(request, REQUEST, RESPONSE)
    if sent is None:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter=REQUEST)
    client = client_of(host, client_id, sent)
    settings = client_settings(client)
    if sent.parameter == RESPONSE:
        return _answered(request, host, client, settings, sent)
    return _asked(request, host, client, settings, sent)


def _asked(request: HttpRequest, host: HostMatch, client: Client, settings: SamlSettings, sent: Sent) -> HttpResponse:
    """End the login that is named in the request, visit the other participants, and answer the application at the end."""
    try:
        asked = read_logout_request(sent, settings, addresses=_addresses(host, client), now=timezone.now())
    except RequestUnusable as refused:
        note_refused(request, client, sent, refused)
        raise RequestRefused(SamlCase.REQUEST_REFUSED, reason=str(refused)) from refused
    if not settings.logout_address:
        raise RequestRefused(SamlCase.NO_LOGOUT_ADDRESS)
    answers = _Answers(host, client, settings, asked, sent.relay_state)
    session = find_session(tenant_id=host.tenant_id, cookie=read_cookie(request, SESSION))
    # SAML profiles, 4.4.3.3: a login that does not exist any more counts as ended.
    if session is None:
        return round_trips.send(request, answers.call(SUCCESS))
    known = participant(session, client, protocol=NAME)
    if known is None or not asked.is_about(_participation(known)):
        return round_trips.send(request, answers.call(REQUESTER, UNKNOWN_PRINCIPAL))
    if not settings.requires_signed_requests and not asked.session_indexes:
        # A NameID can be guessed. Without a signature, only the session index proves that the application sent the request.
        return round_trips.send(request, answers.call(REQUESTER, REQUEST_DENIED))
    # The requesting application gets no logout request, because it began the logout.
    drop_client(session, client, protocol=NAME)
    first = round_trips.begin(session, reason=Initiator.RP_LOGOUT, then=answers.call(SUCCESS), otherwise=answers.call(*PARTLY))
    _note(request, host, client, session)
    answer = round_trips.send(request, first or answers.call(SUCCESS))
    forget_session(request, answer)
    return answer


def _answered(request: HttpRequest, host: HostMatch, client: Client, settings: SamlSettings, sent: Sent) -> HttpResponse:
    """Continue a logout after the answer of a participant. An invalid answer counts as a failed logout at that participant."""
    is_told, answered_id = False, ""
    try:
        answer = read_logout_answer(sent, settings, addresses=_addresses(host, client))
        is_told, answered_id = answer.is_success, answer.in_response_to
    except RequestUnusable as refused:
        note_refused(request, client, sent, refused)
    handle = sent.relay_state or handle_of(answered_id)
    expected = round_trips.expected(host, handle)
    if expected.client_id != client.client_id:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    return round_trips.go_on(request, host, handle, is_told=is_told and answered_id == expected.state.get("id"))


class _Answers:
    """Creates signed answers to one logout request.

    The service chooses one of the answers after the browser has visited all participants.
    """

    def __init__(self, host: HostMatch, client: Client, settings: SamlSettings, asked: LogoutRequest, relay_state: str) -> None:
        self._host, self._client, self._settings, self._asked, self._relay_state = host, client, settings, asked, relay_state

    def call(self, *codes: str) -> BrowserCall:
        message = logout_response(
            issuer=entity_id(self._host.canonical_host, self._settings),
            address=self._settings.logout_address,
            response_id=new_id(),
            in_response_to=self._asked.id,
            now=timezone.now(),
            codes=codes,
        )
        return message_call(self._settings, RESPONSE, message, self._relay_state, signer_of(self._client.tenant_id, self._settings))


def _participation(known: Participant) -> Participation:
    return Participation.of_state({name: value for name, value in known.state.items() if name != "issuer"})


def _addresses(host: HostMatch, client: Client) -> frozenset[str]:
    return frozenset({logout_address(host.issuer, client.client_id), logout_address(host.issuer)})


def _note(request: HttpRequest, host: HostMatch, client: Client, session: Session) -> None:
    sign_in_log.note(
        tenant_id=host.tenant_id,
        type="slo",
        is_success=True,
        user=session.user,
        client=client,
        connection=session.connection.name,
        ip=address_of(request),
        user_agent=user_agent_of(request),
    )
