"""Runs the checks before a page of a tenant: the method and the host. Turns refusals into error pages.

`authapi.edge.open_rates` has already charged the request to the limit of its IP address or browser.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase
from authapi.login.cookies import BROWSER, is_own_form, read_cookie
from authapi.login.flow import HANDLE
from authapi.login.login import Login, kept_login
from authapi.login.transactions import kept_transaction
from authapi.pages.error_page import error_page, unavailable_page
from authapi.pages.hosted_page import tenant_host, with_rate
from authapi.pages.spoken import browser_language
from foundation.tenancy import tenant_bound
from identity.hosts import HostMatch
from identity.languages import DEFAULT, LANGUAGES, named_language, speak, speaking

logger = logging.getLogger(__name__)

View = Callable[[HttpRequest, HostMatch], HttpResponse]


def tenant_page(name: str, *, methods: tuple[str, ...] = ("GET", "POST")) -> Callable[[View], Callable[[HttpRequest], HttpResponse]]:
    """Decorate a view of a page. `name` is the name of the page in log messages.

    Django's CSRF protection is off for these pages, because its cookie is for staff only. Instead, the forms of a login are bound to the
    login and its browser (`opened_login`).
    """

    def decorate(view: View) -> Callable[[HttpRequest], HttpResponse]:
        @csrf_exempt
        @wraps(view)
        def page(request: HttpRequest) -> HttpResponse:
            host = tenant_host(request)
            with tenant_bound(host.tenant_id):
                try:
                    # Switch the language before the view creates texts. A page of a login later switches to the language of the login.
                    with speaking(browser_language(request, host.tenant_id, wished=request.GET.get("ui_locales", ""))):
                        return _answered(request, host, view, methods, name=name)
                except (OperationalError, InterfaceError) as error:
                    return _unavailable(request, error, name=name)

        return page

    return decorate


def _answered(request: HttpRequest, host: HostMatch, view: View, methods: tuple[str, ...], *, name: str) -> HttpResponse:
    try:
        if request.method not in (*methods, "HEAD"):
            raise RequestRefused(RequestCase.METHOD_NOT_ALLOWED, allowed=" and ".join(methods))
        return view(request, host)
    except RequestRefused as refused:
        answer = with_rate(error_page(request, host, refused, name=name), refused.rate)
        if refused.case is RequestCase.METHOD_NOT_ALLOWED:
            answer["Allow"] = ", ".join(methods)
        return answer


def _unavailable(request: HttpRequest, error: Exception, *, name: str) -> HttpResponse:
    """Return the error page for an unavailable database. The page has neither the brand nor the languages of the tenant."""
    # This error is expected while the database is unavailable, so no traceback is logged.
    logger.warning("The database did not answer the page %s: %s", name, type(error).__name__)
    language = named_language(tuple(LANGUAGES), accept_language=request.headers.get("Accept-Language", "")) or DEFAULT
    with speaking(language):
        answer = unavailable_page(request)
    answer["Content-Language"] = language
    return answer


def opened_login(request: HttpRequest, host: HostMatch) -> tuple[Login, str]:
    """Return the login of a page, and its handle.

    Raises `RequestRefused` if the login has expired or belongs to another browser, or if a posted form has no
    valid token of this browser.
    """
    sent = request.POST if request.method == "POST" else request.GET
    handle, browser = sent.get(HANDLE, ""), read_cookie(request, BROWSER)
    row = kept_transaction(tenant_id=host.tenant_id, handle=handle, browser=browser)
    if request.method == "POST" and not is_own_form(request, browser):
        raise RequestRefused(LoginCase.FOREIGN_BROWSER)
    login = kept_login(request, host, row)
    speak(login.language)
    return login, handle
