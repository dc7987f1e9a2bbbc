"""`/wsfed`: sign-in, sign-out and metadata for applications that use WS-Federation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from authapi.clients.logout_addresses import is_allowed
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase
from authapi.login import flow, round_trips
from authapi.login.browser import address_of, see_other, user_agent_of
from authapi.login.cookies import SESSION, form_token, is_own_form, read_cookie
from authapi.login.protocol import BrowserCall, ProtocolRequest
from authapi.login.session_state import forget_session
from authapi.login.sessions import find_session
from authapi.models import Client, Initiator, Session
from authapi.pages.application_link import application_link
from authapi.pages.hosted_page import hosted_page
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.oauth.views.logout import is_navigation
from authapi.protocols.saml.addresses import entity_id
from authapi.protocols.wsfed.entry import NAME, WSFED, client_settings
from authapi.protocols.wsfed.metadata import metadata as metadata_document
from authapi.protocols.wsfed.requests import CLEAN_UP, REALM_PREFIX, SIGN_IN, SIGN_OUT, client_realm, read_parameters, sign_in_of
from authapi.services import sign_in_log
from authapi.services.client_names import is_of_another
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.saml_keys import published_certificates
from identity.hosts import HostMatch

ClientView = Callable[[HttpRequest, HostMatch, str], HttpResponse]
PATH = "wsfed"
_DONE = "u/logged-out"


def wsfed_page(view: ClientView, *, methods: tuple[str, ...] = ("GET", "POST")) -> Callable[..., HttpResponse]:
    """Decorate a view for a page of a tenant. The view gets the client id in the URL, or an empty text if the URL has no client id."""

    @csrf_exempt
    @wraps(view)
    def page(request: HttpRequest, client_id: str = "") -> HttpResponse:
        return tenant_page(NAME, methods=methods)(partial(_at_client, view=view, client_id=client_id))(request)

    return page


def _at_client(request: HttpRequest, host: HostMatch, *, view: ClientView, client_id: str) -> HttpResponse:
    return view(request, host, client_id)


def passive(request: HttpRequest, host: HostMatch, client_id: str) -> HttpResponse:
    """Answer a request of an application: for a token, or to end the session."""
    sent = request.POST if request.method == "POST" else request.GET
    parameters = read_parameters(dict(sent.lists()))
    action = parameters.get("wa", SIGN_IN)
    if action in (SIGN_OUT, CLEAN_UP):
        return _sign_out(request, host, client_id, parameters)
    if action != SIGN_IN:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The parameter wa must be {SIGN_IN} or {SIGN_OUT}.")
    client = _client(host, client_id, parameters.get("wtrealm", ""))
    settings = client_settings(client)
    realm = parameters.get("wtrealm") or f"{REALM_PREFIX}{client.client_id}"
    if not settings.claims.audience and is_of_another(client, realm):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The parameter wtrealm is the name of another application.")
    asked = sign_in_of(parameters, realm=realm, callbacks=tuple(client.redirect_uris.split()))
    return flow.begin(request, WSFED, ProtocolRequest(host, client, asked.state()))


def metadata(request: HttpRequest, host: HostMatch, client_id: str) -> HttpResponse:
    """Return the metadata by which applications trust this service. The metadata of one client has its own URL."""
    client = _client(host, client_id, "") if client_id else None
    settings = client_settings(client).claims if client is not None else None
    document = metadata_document(
        entity_id=entity_id(host.canonical_host, settings),
        endpoint=f"{host.issuer}{PATH}{f'/{client_id}' if client_id else ''}",
        certificates=published_certificates(host.tenant_id),
    )
    answer = HttpResponse(document, content_type="application/xml; charset=utf-8")
    answer["Content-Disposition"] = 'inline; filename="FederationMetadata.xml"'
    # Caches keep the metadata for only five minutes: applications load it every hour or every day, and must then get a new certificate.
    answer["Cache-Control"] = "public, max-age=300"
    return answer


def _client(host: HostMatch, client_id: str, realm: str) -> Client:
    """Return the client in the URL, otherwise the client whose id is in the realm or whose alias is the realm. Raises `RequestRefused`."""
    named = client_id or client_realm(realm)
    rows = Client.objects.of(host.tenant_id).filter(revoked_at=None)
    found = rows.filter(client_id=named[:64]).first() if named else None
    if found is None and realm and not client_id:
        found = rows.filter(settings__client_aliases__contains=[realm]).first()
    if found is None:
        if not named and not realm:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="wtrealm")
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=(client_id or realm)[:64])
    return found


def _sign_out(request: HttpRequest, host: HostMatch, client_id: str, parameters: dict[str, str]) -> HttpResponse:
    """End the session of this browser, ask all applications to clean up, and redirect to a URL that the client or tenant allows.

    If the request is not a navigation, the view first asks the user to confirm: otherwise an image on any page could end the session.
    """
    realm = parameters.get("wtrealm", "")
    client = _client(host, client_id, realm) if client_id or realm else None
    address = parameters.get("wreply", "")
    if address and not is_allowed(address, _allowed(host, client)):
        raise RequestRefused(LoginCase.LOGOUT_ADDRESS_NOT_ALLOWED, address=address[:200])
    session = find_session(tenant_id=host.tenant_id, cookie=read_cookie(request, SESSION))
    back = address or f"{host.issuer}{_DONE}"
    if session is None:
        return see_other(request, back)
    said = request.POST.get("answer") if is_own_form(request, read_cookie(request, SESSION)) else None
    if said not in (None, "yes"):
        kept = {"is_kept": True, "application": application_link(client, host=host)}
        return see_other(request, address) if address else hosted_page(request, host, "logout", kept)
    if said is None and not is_navigation(request):
        return _question(request, host, session, parameters)
    first = round_trips.begin(session, reason=Initiator.RP_LOGOUT, then=BrowserCall(back))
    _note(request, host, client, session)
    answer = round_trips.send(request, first or BrowserCall(back))
    forget_session(request, answer)
    return answer


def _question(request: HttpRequest, host: HostMatch, session: Session, parameters: dict[str, str]) -> HttpResponse:
    """Ask the user whether to end the session. The form posts the answer and the request's parameters to this URL."""
    context = {"user": session.user, "action": request.path, "fields": parameters, "form_token": form_token(read_cookie(request, SESSION))}
    # After the form, the browser is redirected to participants on any host, and at the end to a checked URL. `form-action` must allow all
    # of these URLs.
    return hosted_page(request, host, "logout", context, form_targets=("https:", "http:"))


def _allowed(host: HostMatch, client: Client | None) -> tuple[str, ...]:
    """Return the allowed targets of a sign-out.

    The targets include the callbacks: the application has registered them for tokens, so the browser may also return to them.
    """
    tenant_wide = sign_in_settings(host.tenant_id).allowed_logout_urls
    if client is None:
        return tenant_wide
    return (*client.post_logout_redirect_uris.split(), *client.redirect_uris.split(), *tenant_wide)


def _note(request: HttpRequest, host: HostMatch, client: Client | None, session: Session) -> None:
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
