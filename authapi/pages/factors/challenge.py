"""The page of a login on which the user proves a second factor. It shows one way to prove a factor, with a list of the other ways.

In each login, the first view of the page for a phone or an email address sends one code to this phone or address. For every further code,
the user must press a button. So a reload or a prefetch sends no second code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from authapi.custom_texts import client_values, custom_text
from authapi.factors.challenges import (
    Prover,
    TooManyGuesses,
    WrongProof,
    seconds_to_wait,
    send_code,
)
from authapi.factors.demands import policy_of
from authapi.factors.kinds import RECOVERY_CODE
from authapi.factors.limits import TooManyMessages
from authapi.factors.messages import CannotSend
from authapi.factors.settings import factor_settings
from authapi.failures import RequestRefused
from authapi.login import flow
from authapi.login.browser import see_other, with_parameters
from authapi.login.decision import Step, next_step
from authapi.login.flow import HANDLE, PAGES
from authapi.login.login import Login
from authapi.login.transactions import bind, keep_code, note_progress
from authapi.models import LoginTransaction, SecondFactorPolicy, Session
from authapi.pages.factors.proving import key_context, message_context, nothing_typed, proven_by
from authapi.pages.factors.shown import Trouble, code_field, trouble_of
from authapi.pages.factors.ways import KEYS, Way, first_of, prover_of, ways_of
from authapi.pages.form_fields import Field, Problem, form_fields
from authapi.pages.hosted_page import with_rate
from authapi.pages.passwordless import seconds_text
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from foundation.database.transactions import lock_name, unit_of_work
from identity.hosts import HostMatch

WAY, LIST = "method", "list"
# Name of a member in the progress of the login: the list of the devices to which the page has sent a first code.
_SENT = "factors_sent_to"
_LONGEST_RECOVERY_CODE = 64


@dataclass(frozen=True)
class _Visit:
    """A request to a page during a login. The second factor of this login is due."""

    login: Login
    handle: str
    session: Session
    ways: list[Way]

    @property
    def prover(self) -> Prover:
        return prover_of(self.login, self.session)

    @property
    def address(self) -> str:
        return with_parameters(PAGES[Step.SECOND_FACTOR], {HANDLE: self.handle})

    def way(self, named: str) -> Way | None:
        """Return the way with this name. If no way has this name, return the default way."""
        return next((way for way in self.ways if way.name == named), None) or first_of(self.ways)


@tenant_page("mfa")
def challenge_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the page on which the user proves a second factor, and check the answer."""
    login, handle = opened_login(request, host)
    try:
        session = login.session
        if session is None or next_step(login.wish, login.situation()) is not Step.SECOND_FACTOR:
            # The session has ended or was replaced, or the second factor is already proven.
            return flow.advance(login, handle=handle)
        visit = _Visit(login, handle, session, ways_of(login, session))
        # Another user may have logged in since the page was shown. The answer of the first user must not apply to the other user.
        if request.method != "POST" or request.POST.get("user") != session.user.user_id:
            return _asked(visit, request)
        way = visit.way(request.POST.get(WAY, ""))
        if way is None:
            return _listed(visit)
        return _sent_again(visit, way) if "again" in request.POST else _taken(visit, way)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _asked(visit: _Visit, request: HttpRequest) -> HttpResponse:
    named = request.GET.get(WAY, "")
    way = visit.way(named)
    if way is None or named == LIST:
        return _listed(visit)
    # If a browser only prefetches the page, no code must be sent (Fetch: `Sec-Purpose`).
    is_seen = request.method == "GET" and "prefetch" not in request.headers.get("Sec-Purpose", "")
    trouble = _trouble_of_sending(visit, way, is_first=True) if way.factor is not None and is_seen else None
    return _shown(visit, way, trouble=trouble, is_sent_again="again" in request.GET)


def _trouble_of_sending(visit: _Visit, way: Way, *, is_first: bool) -> Trouble | None:
    try:
        if is_first:
            _send_first(visit, way)
        elif way.factor is not None:
            send_code(visit.prover, way.factor)
    except (CannotSend, TooManyMessages) as error:
        return trouble_of(error)
    return None


@unit_of_work
def _send_first(visit: _Visit, way: Way) -> None:
    """Send the first code of this login to a factor. If two pages are loaded at once, only one of them sends a code."""
    row, factor = visit.login.row, way.factor
    lock_name(f"login:{row.pk}")
    stored = LoginTransaction.objects.of(row.tenant_id).filter(pk=row.pk).values_list("progress", flat=True).first() or {}
    sent_to = str(stored.get(_SENT, "")).split()
    if factor is None or way.name in sent_to:
        return
    send_code(visit.prover, factor)
    bind(row, visit.session)
    note_progress(row, **{_SENT: " ".join([*sent_to, way.name])})


def _sent_again(visit: _Visit, way: Way) -> HttpResponse:
    if way.factor is None:
        return _shown(visit, way)
    seconds = seconds_to_wait(visit.prover, way.factor)
    if seconds:
        return _shown(visit, way, trouble=Trouble(Problem(seconds_text(seconds)), 429))
    trouble = _trouble_of_sending(visit, way, is_first=False)
    if trouble is not None:
        return _shown(visit, way, trouble=trouble)
    return see_other(visit.login.http_request, with_parameters(visit.address, {WAY: way.name, "again": "1"}))


def _taken(visit: _Visit, way: Way) -> HttpResponse:
    login, sent = visit.login, visit.login.http_request.POST
    typed = sent.get("credential" if way.kind in KEYS else "code", "")
    if not typed.strip():
        return _shown(visit, way, trouble=Trouble(Problem(nothing_typed(way), "" if way.kind in KEYS else "code"), 400))
    try:
        proven = proven_by(visit.prover, way, typed, host=login.host)
    except (WrongProof, TooManyGuesses) as error:
        return _shown(visit, way, trouble=trouble_of(error, kind=way.kind))
    bind(login.row, visit.session)
    if proven.recovery_code:
        keep_code(login.row, visit.session.user, proven.recovery_code)
    return flow.second_factor_proven(login, proven.kind, remembers=sent.get("remember") == "1", handle=visit.handle)


def _listed(visit: _Visit) -> HttpResponse:
    problem = _("None of your methods can be used right now. Try again later, or contact the people who run the application.")
    found = [{"label": way.label, "address": with_parameters(visit.address, {WAY: way.name})} for way in visit.ways]
    context: dict[str, Any] = {"ways": found, "problems": [] if found else [Problem(problem)]}
    return render_page(visit.login, visit.handle, "mfa_list", context, status=200 if found else 503)


def _shown(visit: _Visit, way: Way, *, trouble: Trouble | None = None, is_sent_again: bool = False) -> HttpResponse:
    problems = [trouble.problem] if trouble else []
    days = _days_to_remember(visit) if way.kind != RECOVERY_CODE else 0
    remembered = ngettext("Do not ask again in this browser for %(days)d day", "Do not ask again in this browser for %(days)d days", days)
    context: dict[str, Any] = {
        "page": PAGES[Step.SECOND_FACTOR],
        "user": visit.session.user,
        "way": way.name,
        "kind": way.kind,
        "problems": problems,
        "fields": form_fields(_fields(visit, way), problems),
        "others": with_parameters(visit.address, {WAY: LIST}) if len(visit.ways) > 1 else "",
        "remembers": remembered % {"days": days} if days else "",
        **(message_context(visit.prover, way.factor, is_sent_again=is_sent_again) if way.factor is not None else {}),
        **(key_context(visit.prover, way, host=visit.login.host) if way.kind in KEYS else {}),
    }
    template = "mfa_key" if way.kind in KEYS else "mfa_recovery" if way.kind == RECOVERY_CODE else "mfa_code"
    answer = render_page(visit.login, visit.handle, template, context, status=trouble.status if trouble else 200)
    return with_rate(answer, trouble.rate if trouble else None)


def _fields(visit: _Visit, way: Way) -> list[Field]:
    if way.kind in KEYS:
        return []
    if way.kind == RECOVERY_CODE:
        values = client_values(visit.login.client)
        label = custom_text("mfa-recovery-code.mfa-recovery-code-challenge.placeholder", _("Recovery code"), **values)
        return [Field("code", label, maxlength=_LONGEST_RECOVERY_CODE)]
    return [code_field(is_sent=way.factor is not None)]


def _days_to_remember(visit: _Visit) -> int:
    """Return for how many days the user may choose to skip the factor in this browser; 0 if the page offers no choice.

    There is no choice if the tenant has turned off remembered browsers. There is also no choice if the policy is `NEW_DEVICE`: the service
    then remembers every browser without asking.
    """
    settings, login = factor_settings(visit.login.host.tenant_id), visit.login
    is_by_itself = policy_of(login.client, login.organization) is SecondFactorPolicy.NEW_DEVICE
    return settings.remembered_for.days if settings.remembers_browsers and not is_by_itself else 0
