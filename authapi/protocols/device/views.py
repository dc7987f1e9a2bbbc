"""`/activate`: the page on which a user types the code of a device, and the pages on which the login of a device ends.

A code in the URL only fills in the field. The user must press the button (RFC 8628, 3.3.1 and 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from authapi.clients.user_codes import CHARSETS, FEWEST_CHARACTERS, LONGEST_MASK, PLACEHOLDER, UserCodeForm, plain
from authapi.edge.throttling import Rate
from authapi.failures.device import DeviceCase
from authapi.grants.device_code import GRANT
from authapi.login import flow
from authapi.login.browser import address_of, user_agent_of
from authapi.login.cookies import BROWSER, browser_of, form_token, is_own_form, read_cookie, set_cookie
from authapi.login.protocol import ProtocolRequest
from authapi.models import DeviceGrant
from authapi.pages.form_fields import Field, Problem, form_fields
from authapi.pages.hosted_page import hosted_page, with_rate
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.device.codes_page import PARAMETER
from authapi.protocols.device.entry import DEVICE, state_of
from authapi.protocols.device.guesses import Guesses
from authapi.services import sign_in_log
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.device_codes import device_of, why_over
from foundation.database.transactions import unit_of_work
from identity.hosts import HostMatch

_FAILED_ACTIVATION = "fdeac"
_LONGEST_TYPED = LONGEST_MASK + 12
# Minimum length of a guess. A shorter text is a typing error, which is not counted.
_FEWEST_CHARACTERS = min(FEWEST_CHARACTERS.values())


@dataclass(frozen=True)
class _Tried:
    """The result of a typed code. A refusal is returned, not raised: an exception would roll back the counting of the wrong code."""

    row: DeviceGrant | None = None
    over: DeviceCase | None = None
    rate: Rate | None = None


@tenant_page("activate")
def activate(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the field for the code. Redirect to the login if the typed code is valid."""
    form = sign_in_settings(host.tenant_id).user_codes
    sent = request.POST if request.method == "POST" else request.GET
    typed = sent.get(PARAMETER, "")[:_LONGEST_TYPED]
    if request.method != "POST":
        return _page(request, host, form, form.shown(typed))
    if not is_own_form(request, read_cookie(request, BROWSER)):
        problem = _("This page was open for too long, or your browser sends no cookies. Press the button again.")
        return _page(request, host, form, form.shown(typed), problem, status=400)
    tried = _try(request, host, form, typed)
    if tried.rate is not None:
        problem = _("There were too many wrong codes. Wait a few minutes, then try again.")
        return with_rate(_page(request, host, form, typed, problem, status=429), tried.rate)
    if tried.row is None:
        return _page(request, host, form, typed, _words(form, typed, tried.over), status=400, field=PARAMETER)
    row = tried.row
    return flow.begin(request, DEVICE, ProtocolRequest(host, row.application, state_of(row, form.shown(typed) or plain(typed))))


@tenant_page("activated", methods=("GET",))
def activated(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show that a device was allowed."""
    return hosted_page(request, host, "device_result", {"is_allowed": True})


@tenant_page("activation_denied", methods=("GET",))
def activation_denied(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show that a device was denied."""
    return hosted_page(request, host, "device_result", {"is_allowed": False})


@unit_of_work
def _try(request: HttpRequest, host: HostMatch, form: UserCodeForm, typed: str) -> _Tried:
    """Find the device of a code. Count and log a wrong code."""
    guesses = Guesses(request, host.tenant_id, browser=read_cookie(request, BROWSER))
    guesses.hold()
    rate = guesses.used_up()
    if rate is not None:
        return _Tried(rate=rate)
    if not _FEWEST_CHARACTERS <= len(plain(typed)) <= LONGEST_MASK:
        return _Tried()
    row = device_of(host.tenant_id, typed)
    over = why_over(row, now=timezone.now()) if row is not None else None
    if row is not None and over is None and row.application.revoked_at is None and row.application.allows_grant_type(GRANT):
        return _Tried(row)
    guesses.count()
    _note_failure(request, host, row, over)
    return _Tried(over=over)


def _note_failure(request: HttpRequest, host: HostMatch, row: DeviceGrant | None, over: DeviceCase | None) -> None:
    sign_in_log.note(
        tenant_id=host.tenant_id,
        type=_FAILED_ACTIVATION,
        is_success=False,
        description=over.failure.description if over is not None else "No device has the code that was typed.",
        client=row.application if row is not None else None,
        ip=address_of(request),
        user_agent=user_agent_of(request),
    )


def _words(form: UserCodeForm, typed: str, over: DeviceCase | None) -> str:
    if over is DeviceCase.CODE_EXPIRED:
        return _("This code has expired. Get a new one on your device.")
    if over is DeviceCase.CODE_OVER:
        return _("This code has already been used. Get a new one on your device.")
    if not form.shown(typed):
        return _("Enter the code as your device shows it, such as %(code)s.") % {"code": _example(form)}
    return _("No device has this code. Check it, or get a new one on your device.")


def _example(form: UserCodeForm) -> str:
    return form.shown((CHARSETS[form.charset] * 2)[: form.mask.count(PLACEHOLDER)])


def _page(
    request: HttpRequest, host: HostMatch, form: UserCodeForm, value: str, problem: str = "", *, status: int = 200, field: str = ""
) -> HttpResponse:
    """Render the form. If the field is already filled in, the page warns that an attacker may have sent the code."""
    problems = [Problem(problem, field)] if problem else []
    is_number = form.charset == "digits"
    fields = form_fields(
        [Field(PARAMETER, _("Code"), value=value, maxlength=_LONGEST_TYPED, inputmode="numeric" if is_number else "text")], problems
    )
    browser = browser_of(request)
    context = {"fields": fields, "problems": problems, "form_token": form_token(browser), "is_filled": bool(value) and not problem}
    answer = hosted_page(request, host, "activate", context, status=status)
    set_cookie(answer, BROWSER, browser)
    return answer
