"""The page for errors that cannot be sent to a client.

The page shows what the user can do, a link to the application, and details for support.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from authapi.failures import Case, RequestRefused
from authapi.failures.ciba import CibaCase
from authapi.failures.device import DeviceCase
from authapi.failures.logins import LoginCase
from authapi.failures.passwordless import PasswordlessCase
from authapi.failures.requests import RequestCase
from authapi.login.browser import see_other, with_parameters
from authapi.pages.application_link import application_link, client_behind
from authapi.pages.hosted_page import hosted_page
from authapi.tenant_settings import sign_in_settings
from identity.hosts import HostMatch

logger = logging.getLogger(__name__)

# Errors with these statuses may be shown on the tenant's own error page. Other errors are shown on the page of this service, which lets the
# user retry.
_SHOWN_ELSEWHERE = (400, 403)
_SERVER_ERROR = 500
_REFERENCE_BYTES = 4
_BARE_POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@dataclass(frozen=True)
class Words:
    """The texts for the user: what happened, and what to do. `shows_description` adds the error text, for developers."""

    heading: Any
    text: Any
    shows_description: bool = True


WORDS: dict[Case, Words] = {
    LoginCase.REQUEST_EXPIRED: Words(
        _("This login has expired"),
        _("The login took too long or is already complete. Go back to the application and log in again."),
        shows_description=False,
    ),
    LoginCase.FOREIGN_BROWSER: Words(
        _("This login was started in another browser"),
        _("Continue in the browser where you started, or go back to the application and log in again here. Cookies must be allowed."),
        shows_description=False,
    ),
    LoginCase.UNKNOWN_CLIENT: Words(
        _("Unknown application"),
        _("The link that brought you here names an application that does not exist. Go back to the application and try again."),
    ),
    LoginCase.NO_CONNECTION: Words(
        _("There is no way to log in"),
        _("The application has no login method. Contact the people who run the application."),
    ),
    LoginCase.UPSTREAM_UNREACHABLE: Words(
        _("The login service cannot be reached"), _("The service that knows your account does not answer. Try again in a few minutes.")
    ),
    PasswordlessCase.LINK_EXPIRED: Words(
        _("This link has expired"),
        _("A link works only once, and a newer login makes it invalid. Go back to the application and request a new link."),
        shows_description=False,
    ),
    PasswordlessCase.WRONG_REDIRECTED_CODE: Words(
        _("This code does not work"),
        _("The code is wrong, has expired, or was used already. Go back to the application and request a new code."),
        shows_description=False,
    ),
    PasswordlessCase.TOO_MANY_GUESSES: Words(
        _("There were too many wrong codes"),
        _("Wait some minutes, then go back to the application and ask for a new code."),
        shows_description=False,
    ),
    DeviceCase.CODE_OVER: Words(
        _("This code has already been used"),
        _("If you connected your device a moment ago, go back to it. If it still waits, get a new code on it."),
        shows_description=False,
    ),
    DeviceCase.CODE_EXPIRED: Words(
        _("This code has expired"), _("Get a new code on your device, and enter it within a few minutes."), shows_description=False
    ),
    CibaCase.UNKNOWN_LINK: Words(
        _("This link does not work"),
        _("This link belongs to no request. Open the full link from the newest message."),
        shows_description=False,
    ),
    CibaCase.REQUEST_OVER: Words(
        _("This request was already answered"),
        _("You need not do anything. To allow something else, begin again in the application."),
        shows_description=False,
    ),
    CibaCase.REQUEST_EXPIRED: Words(
        _("This request has expired"),
        _("The application gets nothing. If you still want to allow it, begin again in the application."),
        shows_description=False,
    ),
    CibaCase.OTHER_USER: Words(
        _("This request is for another account"),
        _("You logged in with a different account. Open the link again, and log in with the right account."),
        shows_description=False,
    ),
    RequestCase.TOO_MANY_REQUESTS: Words(
        _("Too many requests"), _("There were too many requests in a short time. Wait a minute, then try again.")
    ),
    RequestCase.UNAVAILABLE: Words(_("The service is not available"), _("Try again in a few minutes."), shows_description=False),
}
_OURS = Words(_("Something went wrong"), _("Try again in a few minutes. If it happens again, contact support."))
_THEIRS = Words(
    _("This request cannot be completed"),
    _("Go back to the application and try again. If it happens again, contact support and include the details below."),
)


def error_page(request: HttpRequest, host: HostMatch, refused: RequestRefused, *, name: str) -> HttpResponse:
    """Show why the page with this name refused a request, on the tenant's own error page if the tenant has one.

    The process logs the reference and the kind of error, but no input of the user.
    """
    failure, client, reference = refused.failure, client_behind(request, host), new_reference()
    logger.info(
        "The page %s refused a request: %s, tenant %s, client %s, reference %s",
        name,
        refused.case.name,
        host.tenant_id,
        client.client_id if client else "unknown",
        reference,
    )
    address = sign_in_settings(host.tenant_id).error_page_url
    # An error page of the tenant on this host could fail, too, and redirect the browser here without end.
    if address and failure.status in _SHOWN_ELSEWHERE and urlsplit(address).netloc != request.META.get("HTTP_HOST"):
        told = {"error": failure.error, "error_description": failure.description, "tracking": reference}
        return see_other(request, with_parameters(address, told))
    context = {
        "failure": failure,
        "words": WORDS.get(refused.case, _OURS if failure.status >= _SERVER_ERROR else _THEIRS),
        "application": application_link(client, host=host),
        "reference": reference,
        "now": timezone.now(),
    }
    return hosted_page(request, host, "authorize_error", context, status=failure.status)


def unavailable_page(request: HttpRequest) -> HttpResponse:
    """Tell the user that the service is unavailable. Uses no database, so the page has no brand of the tenant."""
    context = {
        "failure": RequestCase.UNAVAILABLE.failure,
        "words": WORDS[RequestCase.UNAVAILABLE],
        "reference": new_reference(),
        "now": timezone.now(),
    }
    answer = render(request, "hosted/authorize_error.html", context, status=RequestCase.UNAVAILABLE.failure.status)
    answer["Content-Security-Policy"] = _BARE_POLICY
    answer["Cache-Control"] = "no-store"
    answer["Retry-After"] = "2"
    return answer


def new_reference() -> str:
    """Return a short reference for one refusal.

    The user reports the reference to support, and support finds it in the log messages of the service.
    """
    digits = secrets.token_hex(_REFERENCE_BYTES).upper()
    return f"{digits[:4]}-{digits[4:]}"
