"""WS-Federation as an entry of the table of protocols. The state of a request is a `SignIn`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.wsfed import WsFedCase
from authapi.login.browser import form_target, post_form, with_parameters
from authapi.login.protocol import CompleteLogin, Participant, Protocol, ProtocolRequest, RoundTrip, SessionEnd
from authapi.login.round_trips import in_frames
from authapi.login.sessions import note_client
from authapi.login.wish import Presentation, Terms, Wish
from authapi.models import Client
from authapi.protocols.saml.addresses import entity_id
from authapi.protocols.saml.claims import attributes_of, name_id_of, text_of
from authapi.protocols.saml.entry import new_id, signer_of
from authapi.protocols.saml.profiles import profile_of
from authapi.protocols.wsfed.requests import CLEAN_UP, SIGN_IN, SignIn, reply_address
from authapi.protocols.wsfed.settings import PLAIN_JWT, SAML11, WsFedSettings, is_on, wsfed_settings
from authapi.protocols.wsfed.tokens import JWT_TOKEN, SAML11_TOKEN, Scope, Subject, assertion, binary_token, fault, jwt, response
from authapi.xml.bindings import Signer
from identity.models import Organization, User

NAME = "wsfed"
# Logouts that began in the previous version of the service continue at this path.
CLEAN_UP_PATH = "/u/wsfed/cleanup"
_MOST_LANGUAGES = 20


def wish_of(request: ProtocolRequest) -> Wish:
    asked = SignIn.of_state(request.state)
    return Wish(
        Presentation(form_target=form_target(_reply(request, asked)), languages=tuple(asked.ui_locales.split()[:_MOST_LANGUAGES])),
        connection=asked.connection,
        organization=asked.organization,
        invitation=asked.invitation,
        max_age=asked.max_age,
        login_hint=asked.login_hint,
        factors=asked.factors,
        parameters={"login_hint": asked.login_hint} if asked.login_hint else {},
    )


def terms(request: ProtocolRequest, user: User | None, organization: Organization | None) -> Terms:
    """Return empty terms: tokens have no scopes, so no consent is needed."""
    return Terms()


def answer(http_request: HttpRequest, request: ProtocolRequest, login: CompleteLogin) -> HttpResponse:
    asked, settings = SignIn.of_state(request.state), client_settings(request.client)
    scope = Scope(
        issuer=entity_id(request.host.canonical_host, settings.claims),
        audience=settings.claims.audience or asked.realm,
        issued_at=timezone.now(),
        lifetime=settings.lifetime,
    )
    signer = signer_of(request.client.tenant_id, settings.claims)
    result = _result(_subject(login, settings), scope, settings, signer, context=asked.context)
    reply = _reply(request, asked)
    note_client(login.session, request.client, protocol=NAME, state={"reply": reply})
    return _posted(http_request, reply, result, asked)


def refuse(http_request: HttpRequest, request: ProtocolRequest, refused: RequestRefused) -> HttpResponse:
    """Send the application a SOAP fault with the reason, instead of a token."""
    asked = SignIn.of_state(request.state)
    subcode = "FailedAuthentication" if refused.failure.status in (401, 403) else "RequestFailed"
    result = fault(refused.failure.description, subcode=subcode, detail=refused.failure.error)
    return _posted(http_request, _reply(request, asked), result, asked)


def end_session(ending: SessionEnd) -> Sequence[RoundTrip]:
    """Have the browser request the end of the session at every application: on one page of this service, in a frame for each of them.

    Applications do not redirect back after such a request, so the browser cannot visit them one after another.
    """
    if not ending.browser_handle:
        return ()
    addresses = [_clean_up(participant) for participant in ending.participants if is_on(participant.client.settings)]
    return (in_frames(ending.browser_handle, addresses),) if addresses else ()


def client_settings(client: Client) -> WsFedSettings:
    """Return the settings of the add-on. Raises `RequestRefused` if it is off."""
    if not is_on(client.settings):
        raise RequestRefused(WsFedCase.OFF)
    return wsfed_settings(client.settings)


def _reply(request: ProtocolRequest, asked: SignIn) -> str:
    """Return the address to which the token is posted. The address must still be registered. Raises `RequestRefused`."""
    client_settings(request.client)
    return reply_address(asked.reply, tuple(request.client.redirect_uris.split()))


def _subject(login: CompleteLogin, settings: WsFedSettings) -> Subject:
    session = login.session
    profile = profile_of(session.user, settings.claims, login.organization)
    attributes = attributes_of(profile, settings.claims)
    name = name_id_of(profile, attributes, settings.claims, asked_format="", pairwise="", random="", issuer="")
    methods = [str(method["name"]) for method in session.methods]
    return Subject(
        name=name.value,
        format=name.format,
        attributes={attribute.name: [text_of(value) for value in attribute.values] for attribute in attributes},
        authenticated_at=session.authenticated_at,
        method=methods[0] if len(methods) == 1 else "",
    )


def _result(subject: Subject, scope: Scope, settings: WsFedSettings, signer: Signer, *, context: str | None) -> str:
    if settings.token_type == SAML11:
        return response(assertion(new_id(), subject, scope, signer), token_type=SAML11_TOKEN, scope=scope, context=context)
    token = jwt(subject, scope, signer)
    if settings.token_type == PLAIN_JWT:
        return token
    return response(binary_token(new_id(), token), token_type=JWT_TOKEN, scope=scope, context=context)


def _clean_up(participant: Participant) -> str:
    return with_parameters(str(participant.state["reply"]), {"wa": CLEAN_UP})


def _posted(http_request: HttpRequest, reply: str, result: str, asked: SignIn) -> HttpResponse:
    fields: Mapping[str, str] = {"wa": SIGN_IN, "wresult": result, **({"wctx": asked.context} if asked.context is not None else {})}
    made = post_form(http_request, reply, fields)
    made["Cache-Control"] = "no-store"
    made["Pragma"] = "no-cache"
    made["Referrer-Policy"] = "no-referrer"
    return made


WSFED = Protocol(NAME, wish_of, terms, answer, refuse, end_session)
