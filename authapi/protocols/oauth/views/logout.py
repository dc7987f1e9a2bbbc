"""`/v2/logout` and `/oidc/logout`: end the session at this service, at clients that request notices, and, if requested, at the provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse

from authapi.clients.logout_addresses import is_allowed
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import round_trips
from authapi.login.browser import address_of, see_other, user_agent_of, with_parameters
from authapi.login.cookies import SESSION, form_token, is_own_form, read_cookie
from authapi.login.protocol import BrowserCall
from authapi.login.session_state import forget_session
from authapi.login.sessions import find_session
from authapi.models import Client, Initiator, Session
from authapi.pages.application_link import application_link
from authapi.pages.hosted_page import hosted_page
from authapi.pages.spoken import browser_language
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.oauth.parameters import Parameters, read, single
from authapi.protocols.oauth.sent import sent_pairs
from authapi.services import sign_in_log
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.id_token_hints import Hint, read_hint
from authapi.upstream import federated_logout
from identity.hosts import HostMatch
from identity.languages import speak

_DONE = "/u/logged-out"
_NAMES = ("id_token_hint", "logout_hint", "post_logout_redirect_uri", "client_id", "state", "ui_locales", "federated")


@dataclass(frozen=True)
class Ending:
    """A checked logout: session, client and the URL to redirect to. An empty `address` means the page of this service."""

    session: Session | None
    client: Client | None
    address: str
    is_federated: bool


@tenant_page("logout", methods=("GET",))
def plain_logout(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """`/v2/logout`: end the session of this browser, and redirect to a URL that the client (or, without a client, the tenant) allows.

    By the contract, every GET ends the session, even a request for an image that another page contains. This service is stricter: it ends
    the session at once only for a navigation, and otherwise asks the user first.
    """
    sent = _sent(request.GET)
    client = _named_client(host, single(sent, "client_id"))
    allowed = _allowed(host, client)
    address = single(sent, "returnTo")
    if address and not is_allowed(address, allowed):
        raise RequestRefused(LoginCase.LOGOUT_ADDRESS_NOT_ALLOWED, address=address[:200])
    first = next((one for one in allowed if "*" not in one), "") if client is not None else ""
    session = find_session(tenant_id=host.tenant_id, cookie=read_cookie(request, SESSION))
    # `federated` is a parameter without a value: it is on if the query contains it.
    ending = Ending(session, client, address or first, "federated" in request.GET)
    if session is None or is_navigation(request):
        return _end(request, host, ending)
    fields = {"client_id": client.client_id if client else "", "returnTo": ending.address}
    return _question(request, host, ending, fields)


@tenant_page("logout")
def rp_logout(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """`/oidc/logout` (OpenID Connect RP-Initiated Logout 1.0): end the session.

    Ask the user first if nothing proves that the user requests the logout.
    """
    sent = sent_pairs(request)
    parameters = read(sent)
    for name in _NAMES:
        single(parameters, name)
    hint = read_hint(parameters.get("id_token_hint"), tenant_id=host.tenant_id) if parameters.get("id_token_hint") else None
    speak(browser_language(request, host.tenant_id, wished=parameters.get("ui_locales")))
    ending = _checked(request, host, parameters, hint, is_federated=any(name == "federated" for name, _ in sent))
    if ending.session is None or not _must_ask(request, host, parameters, hint, ending.session):
        return _end(request, host, ending)
    return _question(request, host, ending, {name: parameters.get(name) for name in _NAMES})


@tenant_page("logout", methods=("POST",))
def confirmed_logout(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Process the answer of the page that asks whether to log out."""
    parameters = _sent(request.POST)
    speak(browser_language(request, host.tenant_id, wished=parameters.get("ui_locales")))
    hint = read_hint(parameters.get("id_token_hint"), tenant_id=host.tenant_id) if parameters.get("id_token_hint") else None
    ending = _checked(request, host, parameters, hint, is_federated="federated" in request.POST)
    if ending.session is not None and not is_own_form(request, read_cookie(request, SESSION)):
        raise RequestRefused(LoginCase.FOREIGN_BROWSER)
    if request.POST.get("answer") != "yes":
        return see_other(request, ending.address) if ending.address else _ended(request, host, ending.client, is_kept=True)
    return _end(request, host, ending)


@tenant_page("logout", methods=("GET",))
def logged_out(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show that the logout is complete. The browser gets this page if the logout has no URL to redirect to."""
    return _ended(request, host, None, is_done=True)


def _checked(request: HttpRequest, host: HostMatch, parameters: Parameters, hint: Hint | None, *, is_federated: bool) -> Ending:
    """Return the requested logout. Raises `RequestRefused` for contradicting hints and for a URL that is not allowed."""
    client_id = parameters.get("client_id")
    if hint is not None and client_id and hint.client_id != client_id:
        raise RequestRefused(LoginCase.LOGOUT_HINT_MISMATCH, parameter="client_id")
    if hint is not None and parameters.get("logout_hint") and hint.sid != parameters.get("logout_hint"):
        raise RequestRefused(LoginCase.LOGOUT_HINT_MISMATCH, parameter="logout_hint")
    client = _named_client(host, client_id or (hint.client_id if hint else ""))
    address = parameters.get("post_logout_redirect_uri")
    if back := parameters.get("returnTo"):
        # The form on the page of `/v2/logout` contains `returnTo`. As at `/v2/logout`, the query of this URL need not be registered.
        if not is_allowed(back, _allowed(host, client)):
            raise RequestRefused(LoginCase.LOGOUT_ADDRESS_NOT_ALLOWED, address=back[:200])
        session = find_session(tenant_id=host.tenant_id, cookie=read_cookie(request, SESSION))
        return Ending(session, client, back, is_federated)
    # RP-Initiated Logout 1.0, 3.1: the URL must equal a registered URL. A registered wildcard matches no URL.
    if address and ("*" in address or address not in _allowed(host, client)):
        raise RequestRefused(LoginCase.LOGOUT_ADDRESS_NOT_ALLOWED, address=address[:200])
    if address and parameters.get("state"):
        address = with_parameters(address, {"state": parameters.get("state")})
    session = find_session(tenant_id=host.tenant_id, cookie=read_cookie(request, SESSION))
    return Ending(session, client, address, is_federated)


def is_navigation(request: HttpRequest) -> bool:
    """Tell whether the request loads a page into a top-level window, according to the browser (Fetch Metadata, 2).

    False for images, scripts, frames and prefetches of other pages, and for browsers that do not send these headers.
    """
    headers = request.headers
    is_page = (headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")) == ("navigate", "document")
    return is_page and request.method != "HEAD" and "prefetch" not in headers.get("Sec-Purpose", "")


def _must_ask(request: HttpRequest, host: HostMatch, parameters: Parameters, hint: Hint | None, session: Session) -> bool:
    """Tell whether to ask the user. The user is asked if nothing in the request proves that the request is about this session.

    Without the question, any page could log users out (RP-Initiated Logout 1.0, 6). A tenant may turn the question off for navigations
    without a hint. A hint about another user or another session always leads to the question.
    """
    if hint is not None:
        return session.pk != hint.sid and (session.user.user_id != hint.subject or bool(hint.sid))
    if parameters.get("logout_hint"):
        return parameters.get("logout_hint") != session.pk
    return sign_in_settings(host.tenant_id).is_logout_prompt_enabled or not is_navigation(request)


def _end(request: HttpRequest, host: HostMatch, ending: Ending) -> HttpResponse:
    """End the session and redirect: to participants that need the browser, then to the provider, then to the target."""
    session = ending.session
    back = ending.address or f"{host.issuer.rstrip('/')}{_DONE}"
    elsewhere = federated_logout(session, return_to=back) if session is not None and ending.is_federated else None
    provider_call = elsewhere.then if elsewhere is not None else None
    first = None
    if session is not None:
        last = elsewhere.trip if elsewhere is not None else None
        first = round_trips.begin(session, reason=Initiator.RP_LOGOUT, then=provider_call or BrowserCall(back), last=last)
        sign_in_log.note(
            tenant_id=host.tenant_id,
            type="slo",
            is_success=True,
            user=session.user,
            client=ending.client,
            connection=session.connection.name,
            ip=address_of(request),
            user_agent=user_agent_of(request),
        )
    call = first or provider_call
    if call is not None:
        answer = round_trips.send(request, call)
    else:
        answer = see_other(request, ending.address) if ending.address else _ended(request, host, ending.client, is_done=True)
    answer["Cache-Control"] = "no-store"
    forget_session(request, answer)
    return answer


def _question(request: HttpRequest, host: HostMatch, ending: Ending, sent: Mapping[str, str]) -> HttpResponse:
    """Ask the user whether to end the session. `sent` contains the parameters that the form repeats, with the names of `/oidc/logout`."""
    fields = {name: value for name, value in sent.items() if value} | ({"federated": "1"} if ending.is_federated else {})
    user = ending.session.user if ending.session is not None else None
    context = {"user": user, "fields": fields, "form_token": form_token(read_cookie(request, SESSION))}
    # The user's answer leads to a redirect to the checked URL, and the page at that URL may redirect again. `form-action` must allow all of
    # these targets.
    own_scheme = urlsplit(ending.address).scheme
    targets = dict.fromkeys(("https:", "http:", *([f"{own_scheme}:"] if own_scheme else ())))
    return hosted_page(request, host, "logout", context, form_targets=targets)


def _ended(request: HttpRequest, host: HostMatch, client: Client | None, **outcome: bool) -> HttpResponse:
    application = application_link(client, host=host)
    return hosted_page(request, host, "logout", {**outcome, "application": application})


def _sent(values: Mapping[str, str]) -> Parameters:
    return read((name, value) for name, each in values.lists() for value in each)  # type: ignore[attr-defined]  # a QueryDict


def _named_client(host: HostMatch, client_id: str) -> Client | None:
    if not client_id:
        return None
    client = Client.objects.of(host.tenant_id).filter(client_id=client_id[:64], revoked_at=None).first()
    if client is None or client.client_id != client_id:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=client_id[:64])
    return client


def _allowed(host: HostMatch, client: Client | None) -> tuple[str, ...]:
    if client is not None:
        return tuple(client.post_logout_redirect_uris.split())
    return sign_in_settings(host.tenant_id).allowed_logout_urls
