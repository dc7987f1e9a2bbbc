"""`/samlp`: single sign-on, logout and metadata for applications that use SAML 2.0."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from authapi.client_auth import clients
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase
from authapi.failures.saml import SamlCase
from authapi.login import flow
from authapi.login.browser import address_of, user_agent_of
from authapi.login.protocol import ProtocolRequest
from authapi.models import Client
from authapi.pages.connection_metadata import connection_metadata
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.saml.addresses import entity_id, login_address, logout_address
from authapi.protocols.saml.entry import NAME, SAML, SamlLogin, client_settings
from authapi.protocols.saml.metadata import CONTENT_TYPE, ProviderFacts, provider_metadata
from authapi.protocols.saml.requests import MAX_RELAY_STATE, AuthnRequest, RequestUnusable, Sent, read_request, stated_issuer
from authapi.protocols.saml.settings import SamlSettings, is_on
from authapi.services import sign_in_log
from authapi.services.client_names import is_of_another
from authapi.tokens.saml_keys import published_certificates
from authapi.xml.bindings import REQUEST, posted_message, redirected_message
from authapi.xml.failures import XmlError
from foundation.json_values import storable
from identity.hosts import HostMatch

ClientView = Callable[[HttpRequest, HostMatch, str], HttpResponse]
_EXTRAS = ("connection", "organization", "invitation", "login_hint")
_LONGEST_EXTRA = 512
# Maximum length of a refused message in the sign-in log.
_LONGEST_NOTED = 4000


def client_page(view: ClientView, *, methods: tuple[str, ...] = ("GET", "POST")) -> Callable[..., HttpResponse]:
    """Decorate a view for a page of a tenant. The view gets the client id in the URL, or an empty text if the URL has no client id."""

    @csrf_exempt
    @wraps(view)
    def page(request: HttpRequest, client_id: str = "") -> HttpResponse:
        return tenant_page(NAME, methods=methods)(partial(_at_client, view=view, client_id=client_id))(request)

    return page


def _at_client(request: HttpRequest, host: HostMatch, *, view: ClientView, client_id: str) -> HttpResponse:
    return view(request, host, client_id)


def sign_on(request: HttpRequest, host: HostMatch, client_id: str) -> HttpResponse:
    """Answer a request of an application in either binding. Without a request, begin a login for the application (IdP-initiated)."""
    sent = sent_message(request, REQUEST)
    client = client_of(host, client_id, sent)
    settings = client_settings(client)
    extras = {name: _extra(request, name) for name in _EXTRAS}
    languages = tuple(_extra(request, "ui_locales").split())
    asked = AuthnRequest(relay_state=_relay_state(request)) if sent is None else _checked(request, host, client, settings, sent)
    login = SamlLogin(asked, languages=languages, **extras)
    return flow.begin(request, SAML, ProtocolRequest(host, client, login.state()))


def metadata(request: HttpRequest, host: HostMatch, client_id: str) -> HttpResponse:
    """Return the metadata of this service for one application, for all of the tenant's applications, or for one connection's provider."""
    if "connection" in request.GET:
        return connection_metadata(request, host, request.GET["connection"])
    client = client_of(host, client_id, None) if client_id else None
    settings = client_settings(client) if client is not None else SamlSettings()
    answer = HttpResponse(metadata_of(host, client_id, settings), content_type=CONTENT_TYPE)
    answer["Content-Disposition"] = (
        'attachment; filename="metadata.xml"' if "download" in request.GET else 'inline; filename="metadata.xml"'
    )
    # Caches keep the metadata for at most 5 minutes. So a partner that loads it every hour or every day gets a new certificate at its next
    # load.
    answer["Cache-Control"] = "public, max-age=300"
    return answer


def metadata_of(host: HostMatch, client_id: str, settings: SamlSettings) -> bytes:
    """Return the metadata as XML. Its addresses are on this host; its entity id is the same on all hosts of the tenant."""
    facts = ProviderFacts(
        entity_id=entity_id(host.canonical_host, settings),
        login_address=login_address(host.issuer, client_id),
        logout_address=logout_address(host.issuer, client_id),
        certificates=published_certificates(host.tenant_id),
        attributes=[name for names in settings.mappings.values() for name in names],
        wants_signed_requests=settings.requires_signed_requests,
    )
    return provider_metadata(facts)


def sent_message(request: HttpRequest, *parameters: str) -> Sent | None:
    """Return the SAML message in a request, None if the request has no message.

    Raises `RequestRefused` if the request has several messages or several `RelayState` parameters.
    """
    is_posted = request.method == "POST"
    values = request.POST if is_posted else request.GET
    found = [(name, each) for name in parameters for each in values.getlist(name)]
    if len(found) > 1 or len(values.getlist("RelayState")) > 1:
        raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=found[0][0] if len(found) > 1 else "RelayState")
    if not found:
        return None
    query = None if is_posted else request.META.get("QUERY_STRING", "")
    return Sent(found[0][0], found[0][1], values.get("RelayState", ""), query)


def client_of(host: HostMatch, client_id: str, sent: Sent | None) -> Client:
    """Return the client in the URL, otherwise the client that has the Issuer of the message as an alias.

    The Issuer of an unverified message only selects the certificates that must verify it. Raises `RequestRefused`.
    """
    if client_id:
        return _client_with_id(host, client_id)
    try:
        issuer = stated_issuer(sent) if sent is not None else ""
    except XmlError as error:
        raise RequestRefused(SamlCase.REQUEST_REFUSED, reason=f"The SAML request is refused: {error}") from error
    rows = Client.objects.of(host.tenant_id).filter(revoked_at=None, settings__client_aliases__contains=[issuer]) if issuer else ()
    client = next((each for each in rows if is_on(each.settings)), None)
    if client is None:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=issuer[:64])
    return client


def note_refused(request: HttpRequest, client: Client, sent: Sent, refused: RequestUnusable) -> None:
    """Write to the sign-in log why a message was refused, with the decoded message if possible."""
    try:
        raw = redirected_message(sent.message) if sent.query is not None else posted_message(sent.message)
    except XmlError:
        raw = b""
    details: dict[str, Any] = {"protocol": NAME, "message": storable(raw.decode(errors="replace"))[:_LONGEST_NOTED]}
    sign_in_log.note(
        tenant_id=client.tenant_id,
        type="f",
        is_success=False,
        description=str(refused),
        client=client,
        ip=address_of(request),
        user_agent=user_agent_of(request),
        details=details,
    )


def _checked(request: HttpRequest, host: HostMatch, client: Client, settings: SamlSettings, sent: Sent) -> AuthnRequest:
    addresses = frozenset({login_address(host.issuer, client.client_id), login_address(host.issuer)})
    try:
        asked = read_request(sent, settings, addresses=addresses)
        if not settings.audience and is_of_another(client, asked.issuer):
            raise RequestUnusable("The Issuer of the SAML request is the name of another application.")
        return asked
    except RequestUnusable as refused:
        note_refused(request, client, sent, refused)
        raise RequestRefused(SamlCase.REQUEST_REFUSED, reason=str(refused)) from refused


def _client_with_id(host: HostMatch, client_id: str) -> Client:
    try:
        client = clients.get((host.tenant_id, client_id[:64]))
    except Client.DoesNotExist as error:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=client_id[:64]) from error
    if client.revoked_at is not None or client.client_id != client_id:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=client_id[:64])
    return client


def _relay_state(request: HttpRequest) -> str:
    value = (request.POST if request.method == "POST" else request.GET).get("RelayState", "")
    if len(value) > MAX_RELAY_STATE:
        raise RequestRefused(SamlCase.REQUEST_REFUSED, reason=f"RelayState has more than {MAX_RELAY_STATE} characters.")
    return value


def _extra(request: HttpRequest, name: str) -> str:
    """Return a query parameter that this service defines. Such a parameter is in the URL, even if the SAML message is posted."""
    value = request.GET.get(name, "")
    return value if len(value) <= _LONGEST_EXTRA else ""
