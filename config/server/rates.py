"""Limits the rates of requests before they reach Django.

A request for a page is counted before it takes a thread, and the headers of every response say how many requests remain.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from django.utils.translation import gettext as _

from authapi.edge.address_rates import charged_debt, debt_of
from authapi.edge.open_rates import StrangerRefused, admitted_stranger_async
from authapi.edge.throttling import Rate
from authapi.failures.requests import TOO_MANY_REQUESTS, RequestCase
from authapi.login.known_browser import known_browser
from config.server.hosts import Application, Receive, Scope, Send, answer, header
from events.stream.admission import RATE_HEADER, origin_of_scope, wire_headers
from events.stream.refusals import Refused
from foundation.api.paths import MANAGEMENT_PREFIX
from identity.hosts import is_platform_host
from identity.languages import DEFAULT, LANGUAGES, named_language, speaking

# The OpenAPI document needs no token, so its requests count as anonymous.
_OPEN_DOCUMENT = f"{MANAGEMENT_PREFIX}openapi.json"
# Documents that programs load without a token. Error responses to these requests have the form of the management interface.
_OF_PROGRAMS = (_OPEN_DOCUMENT, "/exports/")
# At the platform's host, requests of staff to these paths are not counted. Other paths are counted, because on loopback this host is also
# the host of a tenant.
_OF_STAFF = ("/admin/", "/static/", "/api/docs")


def rated(application: Application) -> Application:
    """Limit requests for pages per IP address and per browser, and add the rate headers to every response of a tenant's host.

    The management interface itself counts a request after the check of its token (`authapi.drf`). A request that is refused earlier
    counts against its IP address.
    """

    async def answer_rated(scope: Scope, receive: Receive, send: Send) -> None:
        match = scope["host_match"]
        if match is None or _is_for_staff(scope):
            await application(scope, receive, send)
        elif scope["path"].startswith(MANAGEMENT_PREFIX) and scope["path"] != _OPEN_DOCUMENT:
            await application(scope, receive, _charging_refusals(scope, match.tenant_id, send))
        else:
            await _answer_stranger(application, scope, receive, send)

    return answer_rated


async def _answer_stranger(application: Application, scope: Scope, receive: Receive, send: Send) -> None:
    tenant_id: str = scope["host_match"].tenant_id
    browser = known_browser(tenant_id, header(scope, b"cookie"))
    try:
        rate = await admitted_stranger_async(tenant_id, origin_of_scope(scope), browser)
    except StrangerRefused as refused:
        await _refuse(scope, refused.rate, send)
        return

    async def send_rated(message: MutableMapping[str, Any]) -> None:
        await send(_with_rate(message, rate) if _lacks_rate(message) else message)

    await application(scope, receive, send_rated)


def _charging_refusals(scope: Scope, tenant_id: str, send: Send) -> Send:
    """Return a `send` function.

    It counts a request of the management interface against its IP address if the request is refused before the token check.
    """

    async def send_rated(message: MutableMapping[str, Any]) -> None:
        if _lacks_rate(message):
            origin = origin_of_scope(scope)
            is_refused = 400 <= message["status"] < 500
            message = _with_rate(message, await charged_debt(tenant_id, origin) if is_refused else debt_of(tenant_id, origin))
        await send(message)

    return send_rated


async def _refuse(scope: Scope, rate: Rate, send: Send) -> None:
    """Answer 429 without Django: with an error object for programs, otherwise with a page that needs neither a thread nor the database."""
    is_head = scope["method"] == "HEAD"
    if scope["path"].startswith(_OF_PROGRAMS):
        await answer(send, Refused(429, TOO_MANY_REQUESTS, headers=wire_headers(rate)), head_only=is_head)
        return
    # The tenant's languages are in the database, which this code does not query.
    language = named_language(tuple(LANGUAGES), accept_language=header(scope, b"accept-language")) or DEFAULT
    body = _page(language).encode()
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-language", language.encode()),
        (b"vary", b"Accept-Language"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", b"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),
        *wire_headers(rate),
    ]
    await send({"type": "http.response.start", "status": 429, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else body})


def _page(language: str) -> str:
    failure = RequestCase.TOO_MANY_REQUESTS.failure
    with speaking(language):
        return _PAGE.format(
            language=language,
            direction="rtl" if LANGUAGES[language].is_rtl else "ltr",
            heading=_("Too many requests"),
            text=_("There were too many requests in a short time. Wait a minute, then try again."),
            error=_("Error"),
            code=failure.error,
            details=_("Details"),
            description=failure.description,
        )


_PAGE = """<!doctype html>
<html lang="{language}" dir="{direction}">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>{heading}</title>
    <link rel="stylesheet" href="/static/theme/hosted.css">
  </head>
  <body class="layout-center">
    <main>
      <header><h1>{heading}</h1></header>
      <p>{text}</p>
      <dl class="facts">
        <dt>{error}</dt><dd><code>{code}</code></dd>
        <dt>{details}</dt><dd lang="en" dir="ltr">{description}</dd>
      </dl>
    </main>
  </body>
</html>
"""


def _is_for_staff(scope: Scope) -> bool:
    return scope["path"].startswith(_OF_STAFF) and is_platform_host(header(scope, b"host"))


def _lacks_rate(message: MutableMapping[str, Any]) -> bool:
    return message["type"] == "http.response.start" and not any(name.lower() == RATE_HEADER for name, _ in message["headers"])


def _with_rate(message: MutableMapping[str, Any], rate: Rate) -> MutableMapping[str, Any]:
    rate = rate.used_up if message["status"] == 429 else rate
    return {**message, "headers": [*message["headers"], *wire_headers(rate)]}
