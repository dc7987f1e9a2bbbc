"""Reads cookies and the origin from request headers, for endpoints outside of Django."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie

from django.http import HttpResponse

from authapi.clients.origins import is_origin_allowed, web_origin_of
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.login.cookies import BROWSER, cookie_name, set_cookie
from authapi.models import Client
from authapi.protocols.legacy.requests import LegacyRequest
from foundation.secrets.random_secrets import new_secret

_LONGEST = 128
_LONGEST_HEADER = 8192


def cookie_of(request: LegacyRequest, name: str) -> str:
    """Return the value of a cookie of this service; empty if the browser did not send this cookie."""
    header = request.headers.get("cookie", "")
    if len(header) > _LONGEST_HEADER:
        return ""
    try:
        found = SimpleCookie(header).get(cookie_name(name))
    except CookieError:
        return ""
    return found.value if found is not None and len(found.value) <= _LONGEST else ""


def browser_cookie(request: LegacyRequest) -> tuple[str, dict[str, str]]:
    """Return a value for the cookie that identifies the browser, and the header that sets the cookie.

    The value is new if the browser sent none.
    """
    browser = cookie_of(request, BROWSER) or new_secret()
    answer = HttpResponse()
    set_cookie(answer, BROWSER, browser)
    return browser, {"Set-Cookie": answer.cookies[cookie_name(BROWSER)].OutputString()}


def allowed_origin(request: LegacyRequest, client: Client) -> str:
    """Return the origin of the requesting page if it is registered for the client. Raises `RequestRefused`.

    For a client without registered origins, `is_origin_allowed` accepts every origin. This function refuses every origin of such a client,
    because scripts call these endpoints with cookies.
    """
    origin = request.origin
    if not origin:
        raise RequestRefused(LegacyCase.ORIGIN_MISSING)
    if not is_registered_origin(client, origin):
        raise RequestRefused(LegacyCase.ORIGIN_NOT_ALLOWED, origin=origin[:200])
    return origin


def is_registered_origin(client: Client, origin: str) -> bool:
    """Tell whether an origin belongs to the client: it is an allowed origin, a web origin, or the origin of a callback."""
    registered = (*client.allowed_origins.split(), *(client.settings.get("web_origins") or ()), *client.redirect_uris.split())
    return bool(registered) and web_origin_of(origin) == origin and is_origin_allowed(origin, allowed=registered, known=())


def is_own_page(request: LegacyRequest) -> bool:
    """Tell whether the request comes from a page of this host. Browsers send the origin of the page with every POST."""
    return web_origin_of(request.host.issuer) == request.origin
