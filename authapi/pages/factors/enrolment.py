"""The pages on which a user without a second factor sets up a factor, in a login that requires a factor.

An enrollment belongs to the login that began the enrollment. The row of that login names the enrollment, and codes and challenges are bound
to that row. Another login of the same user, with the same password, cannot see or confirm the enrollment. Before a factor is confirmed,
the row of the user is locked, and the need for an enrollment is checked again. So one of two concurrent logins enrolls a factor, and the
other login must prove that factor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from authapi.custom_texts import client_values, custom_text
from authapi.factors.challenges import (
    ENROLL,
    Prover,
    TooManyGuesses,
    WrongProof,
    check_code,
    open_key_challenge,
    seconds_to_wait,
    send_code,
)
from authapi.factors.demands import usable_kinds
from authapi.factors.kinds import EMAIL, PHONE, TOTP, is_second_to
from authapi.factors.limits import TooManyMessages
from authapi.factors.messages import CannotSend
from authapi.factors.policy import Due
from authapi.factors.relying_party import party_of
from authapi.factors.settings import factor_settings
from authapi.failures import RequestRefused
from authapi.login import flow
from authapi.login.browser import see_other, with_parameters
from authapi.login.decision import Step, next_step
from authapi.login.flow import HANDLE, PAGES
from authapi.login.login import Login
from authapi.login.transactions import bind, keep_code, note_progress
from authapi.models import Session
from authapi.pages.factors.setup import address_context, app_context, key_context
from authapi.pages.factors.shown import Trouble, trouble_of
from authapi.pages.factors.ways import KEYS, label_of, prover_of
from authapi.pages.form_fields import Field, Problem, form_fields
from authapi.pages.hosted_page import with_rate
from authapi.pages.passwordless import BETWEEN_DIGITS, LONGEST_NUMBER, number_field, odd_number, seconds_text
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from authapi.tokens.contexts import names_of
from foundation.database.transactions import unit_of_work
from foundation.secrets import totp
from identity.factors import ceremonies
from identity.factors.ceremonies import ANSWER_MOST_CHARACTERS, CeremonyRefused
from identity.factors.user_factors import (
    Confirmed,
    add_key,
    begin_enrolment,
    confirm_enrolment,
    factor_named,
)
from identity.hosts import HostMatch
from identity.messages.numbers import NumberRefused, normalized_number
from identity.messages.text_senders import countries_for
from identity.models import EnrolledFactor
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound
from identity.services.users import locked_user

# Members of the column `progress` of a login transaction: the chosen kind of factor, and the id of the device that is not confirmed yet.
_KIND, _DEVICE = "enrolling", "enrolling_device"


class _Over(Exception):
    """The enrollment has ended: it expired, a newer enrollment replaced it, or the user enrolled a factor in another login."""


@dataclass(frozen=True)
class _Visit:
    """A request to a page of a login in which a user without a factor must enroll a factor."""

    login: Login
    handle: str
    session: Session
    kinds: tuple[str, ...]

    @property
    def prover(self) -> Prover:
        return prover_of(self.login, self.session)

    @property
    def kind(self) -> str:
        """The kind of factor that this login sets up; empty until a kind is chosen. Ignores a choice that was made in another session."""
        chosen = str(self.login.row.progress.get(_KIND, ""))
        return chosen if chosen in self.kinds and self.login.row.session_id == self.session.pk else ""

    @property
    def factor(self) -> EnrolledFactor | None:
        """The factor that is not confirmed yet."""
        try:
            found = factor_named(self.session.user, str(self.login.row.progress.get(_DEVICE, ""))) if self.kind else None
        except NotFound:
            return None
        return found if found is not None and not found.is_confirmed and found.kind == self.kind else None

    @property
    def address(self) -> str:
        return with_parameters(PAGES[Step.ENROLLMENT], {HANDLE: self.handle})

    def note(self, kind: str, device: str = "") -> None:
        bind(self.login.row, self.session)
        note_progress(self.login.row, **{_KIND: kind, _DEVICE: device})

    def go_on(self) -> HttpResponse:
        """Redirect to the next page of the enrollment, so that a reload does not repeat the form."""
        return see_other(self.login.http_request, self.address)


@tenant_page("mfa_enroll")
def enrolment_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Let a user choose a kind of factor and set it up."""
    login, handle = opened_login(request, host)
    try:
        session = login.session
        if session is None or next_step(login.wish, login.situation()) is not Step.ENROLLMENT:
            return flow.advance(login, handle=handle)
        visit = _Visit(login, handle, session, _kinds_for(login, session))
        if request.method != "POST" or request.POST.get("user") != session.user.user_id:
            return _shown(visit)
        return _chosen(visit, request.POST["kind"]) if "kind" in request.POST else _filled_in(visit)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _kinds_for(login: Login, session: Session) -> tuple[str, ...]:
    """Return the kinds that this user can set up now.

    Codes by mail go only to the address of the profile. Otherwise an attacker with a stolen password could choose their own address.
    """
    methods = names_of(session.methods)
    usable = (kind for kind in usable_kinds(login.host.tenant_id) if is_second_to(kind, methods))
    return tuple(kind for kind in usable if kind != EMAIL or session.user.email)


def _chosen(visit: _Visit, kind: str) -> HttpResponse:
    """Start to set up a kind of factor. For an unknown kind, show the choice again."""
    if kind not in visit.kinds:
        visit.note("")
        return visit.go_on()
    try:
        if kind == TOTP:
            visit.note(kind, _begun(visit, kind, secret=totp.new_secret()).device)
        elif kind == EMAIL:
            _send_first(visit, kind, visit.session.user.email or "")
        else:
            visit.note(kind)
    except (CannotSend, TooManyMessages) as error:
        return _listed(visit, trouble_of(error))
    except (AlreadyExists, Conflict, Invalid):
        return _listed(visit, Trouble(Problem(_no_kind()), 409))
    return visit.go_on()


@unit_of_work
def _send_first(visit: _Visit, kind: str, address: str) -> None:
    """Start to set up a phone or an email address, and send a code to it. Raises the errors of `begin_enrolment` and `send_code`."""
    factor = _begun(visit, kind, address=address)
    send_code(visit.prover, factor, purpose=ENROLL)
    visit.note(kind, factor.device)


def _begun(visit: _Visit, kind: str, *, address: str = "", secret: str = "") -> EnrolledFactor:
    user = visit.session.user
    return begin_enrolment(tenant_id=user.tenant_id, user_id=user.user_id, kind=kind, address=address, secret=secret)


def _filled_in(visit: _Visit) -> HttpResponse:
    """Process the form of the chosen kind."""
    if not visit.kind:
        return _listed(visit)
    if visit.kind not in KEYS and visit.factor is None:
        return _number_taken(visit) if visit.kind == PHONE else _ended(visit)
    return _sent_again(visit) if "again" in visit.login.http_request.POST else _proof_taken(visit)


def _proof_taken(visit: _Visit) -> HttpResponse:
    try:
        confirmed = _confirmed(visit)
    except (WrongProof, TooManyGuesses) as error:
        return _shown(visit, trouble_of(error, kind=visit.kind))
    except AlreadyExists:
        return _shown(visit, Trouble(Problem(_("This key is set up for an account already.")), 409))
    except (_Over, NotFound, Conflict):
        return _ended(visit)
    if confirmed.recovery_code and factor_settings(visit.login.host.tenant_id).has_recovery_codes:
        keep_code(visit.login.row, visit.session.user, confirmed.recovery_code)
    return flow.second_factor_proven(visit.login, confirmed.factor.kind, handle=visit.handle)


def _number_taken(visit: _Visit) -> HttpResponse:
    typed = visit.login.http_request.POST.get("phone_number", "").strip()[: LONGEST_NUMBER + 1]
    try:
        _send_first(visit, PHONE, normalized_number(typed, countries=countries_for(visit.login.host.tenant_id)))
    except (NumberRefused, Invalid):
        return _shown(visit, Trouble(Problem(odd_number(typed), "phone_number"), 400), typed=typed)
    except (CannotSend, TooManyMessages) as error:
        return _shown(visit, trouble_of(error), typed=typed)
    except (AlreadyExists, Conflict):
        return _listed(visit, Trouble(Problem(_no_kind()), 409))
    return visit.go_on()


def _sent_again(visit: _Visit) -> HttpResponse:
    factor = visit.factor
    if factor is None or factor.kind not in (PHONE, EMAIL):
        return _shown(visit)
    seconds = seconds_to_wait(visit.prover, factor)
    if seconds:
        return _shown(visit, Trouble(Problem(seconds_text(seconds)), 429))
    try:
        send_code(visit.prover, factor, purpose=ENROLL)
    except (CannotSend, TooManyMessages) as error:
        return _shown(visit, trouble_of(error))
    return visit.go_on()


def _confirmed(visit: _Visit) -> Confirmed:
    """Check the answer in the form, and return the factor that it confirms.

    Raises `WrongProof`, `TooManyGuesses`, `AlreadyExists`, `NotFound`, `Conflict` and `_Over`.
    """
    factor, sent, user = visit.factor, visit.login.http_request.POST, visit.session.user
    if visit.kind in KEYS:
        return _key_added(visit, sent.get("credential", "")[:ANSWER_MOST_CHARACTERS])
    if factor is None:
        raise _Over
    code, step = sent.get("code", "").translate(BETWEEN_DIGITS), 0
    if visit.kind == TOTP:
        found = totp.accepted_step(factor.secret(), code, moment=time.time(), last_step=0) if len(code) <= LONGEST_NUMBER else None
        if found is None:
            raise WrongProof
        step = found
    else:
        check_code(visit.prover, factor, code, purpose=ENROLL)
    return _if_still_due(visit, lambda: confirm_enrolment(tenant_id=user.tenant_id, user_id=user.user_id, device=factor.device, step=step))


def _key_added(visit: _Visit, answer: str) -> Confirmed:
    user, party, kind = visit.session.user, party_of(visit.login.host), visit.kind
    challenge = open_key_challenge(visit.prover, purpose=ENROLL)
    if challenge is None:
        raise WrongProof
    try:
        made = ceremonies.verified_registration(answer, party, challenge=challenge, is_passkey=False)
    except CeremonyRefused as refused:
        raise WrongProof from refused
    return _if_still_due(
        visit, lambda: add_key(tenant_id=user.tenant_id, user_id=user.user_id, kind=kind, made=made, relying_party=party.id)
    )


@unit_of_work
def _if_still_due(visit: _Visit, enrol: Callable[[], Confirmed]) -> Confirmed:
    """Lock the user, and enroll if the session is still valid and the user still has no factor. Raises `_Over`."""
    session = visit.session
    user = locked_user(tenant_id=session.tenant_id, user_id=session.user.user_id)
    alive = Session.objects.of(session.tenant_id).filter(pk=session.pk, digest=session.digest, idle_expires_at__gt=timezone.now())
    if user.blocked or not alive.exists() or visit.login.second_factor(session) is not Due.ENROLL:
        raise _Over
    return enrol()


def _ended(visit: _Visit) -> HttpResponse:
    visit.note("")
    return _listed(visit, Trouble(Problem(_("The setup has ended. Begin again.")), 409))


def _shown(visit: _Visit, trouble: Trouble | None = None, *, typed: str = "") -> HttpResponse:
    factor = visit.factor
    if not visit.kind or (visit.kind in (TOTP, EMAIL) and factor is None):
        return _listed(visit, trouble)
    problems = [trouble.problem] if trouble else []
    context: dict[str, Any] = {"user": visit.session.user, "kind": visit.kind, "problems": problems, "has_others": len(visit.kinds) > 1}
    context["page"] = PAGES[Step.ENROLLMENT]
    if visit.kind in KEYS:
        context |= key_context(visit.prover, party_of(visit.login.host), visit.kind)
    elif visit.kind == TOTP and factor is not None:
        context |= app_context(visit.session.user, factor)
    elif factor is not None:
        context |= address_context(visit.prover, factor)
    else:
        context["fields"] = [_number_field(visit, typed)]
    context["fields"] = form_fields(context.get("fields", []), problems)
    template = "mfa_enroll_key" if visit.kind in KEYS else "mfa_enroll_app" if visit.kind == TOTP else "mfa_enroll_address"
    answer = render_page(visit.login, visit.handle, template, context, status=trouble.status if trouble else 200)
    return with_rate(answer, trouble.rate if trouble else None)


def _listed(visit: _Visit, trouble: Trouble | None = None) -> HttpResponse:
    if not visit.kinds and trouble is None:
        trouble = Trouble(Problem(_no_kind()), 503)
    context: dict[str, Any] = {
        "page": PAGES[Step.ENROLLMENT],
        "user": visit.session.user,
        "kinds": [{"name": kind, "label": label_of(kind)} for kind in visit.kinds],
        "problems": [trouble.problem] if trouble else [],
    }
    answer = render_page(visit.login, visit.handle, "mfa_enroll", context, status=trouble.status if trouble else 200)
    return with_rate(answer, trouble.rate if trouble else None)


def _number_field(visit: _Visit, typed: str) -> Field:
    label = custom_text("mfa-sms.mfa-sms-enrollment.placeholder", _("Phone number"), **client_values(visit.login.client))
    return number_field(label, typed)


def _no_kind() -> str:
    return _("No method can be set up right now. Try again later, or contact the people who run the application.")
