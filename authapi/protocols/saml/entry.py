"""SAML 2.0 as an entry of the table of protocols. The state of a request is a `SamlLogin`."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.saml import SamlCase
from authapi.login.browser import form_target, post_form
from authapi.login.protocol import BrowserCall, CompleteLogin, Participant, Protocol, ProtocolRequest, RoundTrip, SessionEnd
from authapi.login.sessions import note_client
from authapi.login.wish import Presentation, Prompt, Terms, Wish
from authapi.models import Client, Session
from authapi.protocols.saml.addresses import NoConsumerAddress, UnknownIndex, consumer_address, default_address, entity_id
from authapi.protocols.saml.assertions import Answering, Authenticated, failure, success
from authapi.protocols.saml.claims import NameIdUnavailable, attributes_of, name_id_of, pairwise_id
from authapi.protocols.saml.logout import Participation, logout_request
from authapi.protocols.saml.names import REQUEST_UNSUPPORTED, UNSUPPORTED_BINDING
from authapi.protocols.saml.profiles import profile_of
from authapi.protocols.saml.refusals import codes_of
from authapi.protocols.saml.requests import AuthnRequest, chosen_context, unsupported, wished_contexts
from authapi.protocols.saml.settings import SamlSettings, is_on, saml_settings
from authapi.tokens.contexts import has_second_factor
from authapi.tokens.saml_keys import signing_identity
from authapi.xml.algorithms import DIGEST_NAMES, SIGNATURE_NAMES
from authapi.xml.bindings import HTTP_POST, REQUEST, RESPONSE, Signer, posted_fields, redirect_address
from authapi.xml.parsing import Element
from identity.models import Organization, User

NAME = "samlp"
_MOST_LANGUAGES = 20


@dataclass(frozen=True)
class SamlLogin:
    """A login as an application requested it: the SAML request, and query parameters that this service accepts in addition."""

    request: AuthnRequest
    connection: str = ""
    organization: str = ""
    login_hint: str = ""
    invitation: str = field(default="", repr=False)
    languages: tuple[str, ...] = field(default=())

    def state(self) -> dict[str, Any]:
        """Return the login as JSON, to store it in its row."""
        return {**vars(self), "request": self.request.state(), "languages": list(self.languages)}

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> SamlLogin:
        request = AuthnRequest.of_state(state["request"])
        return cls(**{**state, "request": request, "languages": tuple(state["languages"][:_MOST_LANGUAGES])})


def wish_of(request: ProtocolRequest) -> Wish:
    login, settings = SamlLogin.of_state(request.state), client_settings(request.client)
    asked = login.request
    address, refusal = _address(request.client, asked, settings)
    presentation = Presentation(form_target=form_target(address), languages=login.languages)
    if refusal is not None:
        return Wish(presentation, refusal=refusal, is_silent=asked.is_passive)
    return Wish(
        presentation,
        connection=login.connection,
        organization=login.organization,
        invitation=login.invitation,
        prompts=frozenset({Prompt.LOGIN}) if asked.is_forced else frozenset(),
        is_silent=asked.is_passive,
        login_hint=login.login_hint or (asked.subject if "@" in asked.subject else ""),
        factors=wished_contexts(asked, settings),
        parameters={"login_hint": login.login_hint} if login.login_hint else {},
    )


def terms(request: ProtocolRequest, user: User | None, organization: Organization | None) -> Terms:
    """Return empty terms: an assertion has no scopes, so the user need not consent."""
    return Terms()


def answer(http_request: HttpRequest, request: ProtocolRequest, login: CompleteLogin) -> HttpResponse:
    asked, settings = SamlLogin.of_state(request.state).request, client_settings(request.client)
    session = login.session
    context = chosen_context(asked, settings, has_second_factor=has_second_factor(session.methods))
    if context is None:
        raise RequestRefused(SamlCase.CONTEXT_UNAVAILABLE)
    answering = _answering(request, asked, settings)
    authenticated = authenticated_of(
        session.user,
        request.client,
        settings,
        asked=asked,
        issuer=answering.issuer,
        context=context,
        organization=login.organization,
        session=session,
    )
    message = success(answering, authenticated, settings, signer_of(request.client.tenant_id, settings))
    participation = Participation(authenticated.name_id, authenticated.session_index)
    note_client(session, request.client, protocol=NAME, state={**participation.state(), "issuer": answering.issuer})
    return _posted(http_request, answering.address, posted_fields(RESPONSE, message, asked.relay_state))


def authenticated_of(
    user: User,
    client: Client,
    settings: SamlSettings,
    *,
    asked: AuthnRequest,
    issuer: str,
    context: str,
    organization: Organization | None = None,
    session: Session | None = None,
) -> Authenticated:
    """Return the content of an assertion about a user. `session` is None for the sample in the admin. Raises `RequestRefused`."""
    profile = profile_of(user, settings, organization)
    attributes = attributes_of(profile, settings)
    try:
        name_id = name_id_of(
            profile,
            attributes,
            settings,
            asked_format=asked.name_id_format,
            pairwise=pairwise_id(tenant_id=client.tenant_id, client_id=client.client_id, user_id=user.user_id),
            random=new_id(),
            issuer=issuer,
            sp_qualifier=asked.sp_qualifier or asked.issuer,
        )
    except NameIdUnavailable as error:
        raise RequestRefused(SamlCase.NAME_ID_UNAVAILABLE) from error
    # SAML core, 3.4.1.4: an answer about another user than the requested user is invalid.
    if asked.subject and asked.subject not in (name_id.value, user.user_id, user.email):
        raise RequestRefused(SamlCase.OTHER_USER)
    return Authenticated(
        assertion_id=new_id(),
        name_id=name_id,
        attributes=attributes,
        audience=asked.issuer,
        session_index=_session_index(session, client) if session else new_id(),
        authenticated_at=session.authenticated_at if session else timezone.now(),
        authn_context=context,
    )


def refuse(http_request: HttpRequest, request: ProtocolRequest, refused: RequestRefused) -> HttpResponse:
    """Send a response with the reason of a refusal.

    If the application has sent no request, show an error page, because the application does not wait for a response.
    """
    asked, settings = SamlLogin.of_state(request.state).request, client_settings(request.client)
    if asked.is_unsolicited:
        raise refused
    answering = _answering(request, asked, settings)
    codes = codes_of(refused.case, refused.failure.status, is_passive=asked.is_passive)
    message = failure(answering, codes, refused.failure.description, signer_of(request.client.tenant_id, settings))
    return _posted(http_request, answering.address, posted_fields(RESPONSE, message, asked.relay_state))


def end_session(ending: SessionEnd) -> Sequence[RoundTrip]:
    """Send the browser to each application that requests notices of logouts. Without a browser, no application is notified."""
    if not ending.browser_handle:
        return ()
    known = [(each, saml_settings(each.client.settings)) for each in ending.participants if is_on(each.client.settings)]
    told = [(participant, settings) for participant, settings in known if settings.sends_logouts]
    return tuple(_round_trip(participant, settings, ending.browser_handle, place) for place, (participant, settings) in enumerate(told))


def client_settings(client: Client) -> SamlSettings:
    """Return the settings of the add-on. Raises `RequestRefused` if it is off."""
    if not is_on(client.settings):
        raise RequestRefused(SamlCase.OFF)
    return saml_settings(client.settings)


def signer_of(tenant_id: str, settings: SamlSettings) -> Signer:
    """Return the signer for an application: the key of the tenant, with the algorithms of the settings."""
    identity = signing_identity(tenant_id)
    return Signer(identity.private_key, identity.certificate, SIGNATURE_NAMES[settings.signature], DIGEST_NAMES[settings.digest])


def new_id() -> str:
    """Return a random id for a message (SAML core, 1.3.4). The id is an XML name, so it must not begin with a digit."""
    return f"_{secrets.token_hex(20)}"


def handle_of(message_id: str) -> str:
    """Return the handle of a logout. The id of the logout request that this service sent contains the handle.

    The id is needed because some applications answer without the RelayState of the request.
    """
    return message_id.removeprefix("_").rpartition(".")[0]


def _address(client: Client, asked: AuthnRequest, settings: SamlSettings) -> tuple[str, RequestRefused | None]:
    """Return two values: the address for answers, and the refusal of the request. The second value is None for a valid request.

    Raises `RequestRefused` if the application has no address for answers.
    """
    callbacks = client.redirect_uris.split()
    try:
        address = consumer_address(asked, callbacks, settings)
    except UnknownIndex as error:
        return default_address(callbacks, settings), RequestRefused(SamlCase.REQUEST_UNSUPPORTED, reason=str(error))
    except NoConsumerAddress as error:
        raise RequestRefused(LoginCase.NO_CALLBACK) from error
    code = unsupported(asked)
    if code == UNSUPPORTED_BINDING:
        return address, RequestRefused(SamlCase.BINDING_UNSUPPORTED)
    if code == REQUEST_UNSUPPORTED:
        return address, RequestRefused(SamlCase.REQUEST_UNSUPPORTED, reason="The Comparison of the request is not known.")
    return address, None


def _answering(request: ProtocolRequest, asked: AuthnRequest, settings: SamlSettings) -> Answering:
    address, _ = _address(request.client, asked, settings)
    return Answering(
        issuer=entity_id(request.host.canonical_host, settings),
        address=address,
        in_response_to=asked.id,
        response_id=new_id(),
        now=timezone.now(),
    )


def _session_index(session: Session, client: Client) -> str:
    """Return the session index of a session at one application. It never changes.

    Each application gets a different index for a session, so that applications cannot correlate their users.
    """
    return f"_{hashlib.sha256(f'{session.pk}:{client.client_id}'.encode()).hexdigest()[:40]}"


def _round_trip(participant: Participant, settings: SamlSettings, handle: str, place: int) -> RoundTrip:
    client, state = participant.client, dict(participant.state)
    issuer, request_id = str(state.pop("issuer")), f"_{handle}.{place}"
    message = logout_request(
        issuer=issuer,
        address=settings.logout_address,
        request_id=request_id,
        participation=Participation.of_state(state),
        now=timezone.now(),
    )
    call = message_call(settings, REQUEST, message, handle, signer_of(client.tenant_id, settings))
    return RoundTrip(client.client_id, call, {"id": request_id})


def message_call(settings: SamlSettings, parameter: str, message: Element, relay_state: str, signer: Signer) -> BrowserCall:
    """Return the redirect or form with which the browser sends a signed logout message to the application, in the application's binding."""
    if settings.logout_binding == HTTP_POST:
        return BrowserCall(settings.logout_address, posted_fields(parameter, message, relay_state, signer))
    return BrowserCall(redirect_address(settings.logout_address, parameter, message, relay_state, signer))


def _posted(http_request: HttpRequest, address: str, fields: Mapping[str, str]) -> HttpResponse:
    made = post_form(http_request, address, fields)
    made["Cache-Control"] = "no-store"
    made["Pragma"] = "no-cache"
    made["Referrer-Policy"] = "no-referrer"
    return made


SAML = Protocol(NAME, wish_of, terms, answer, refuse, end_session)
