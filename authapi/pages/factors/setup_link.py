"""The page of a link that sets up a second factor. Opening the link changes nothing, because mail scanners open every link.

A user who already has a factor must prove this factor first. The link and this proof do not begin a session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from authapi.accounts.event_context import context_of
from authapi.accounts.setup_links import (
    PARAMETER,
    PATH,
    ProofNeeded,
    SetUp,
    Setup,
    SetupOver,
    add_made_key,
    begin_address,
    begin_app,
    confirm,
    needs_proof,
    note_proof,
    open_setup,
)
from authapi.custom_texts import custom_text
from authapi.factors.association import open_enrollment
from authapi.factors.challenges import ENROLL, ENROLL_KEY, Prover, TooManyGuesses, WrongProof, seconds_to_wait, send_code
from authapi.factors.kinds import EMAIL, PHONE, TOTP
from authapi.factors.limits import TooManyMessages
from authapi.factors.messages import CannotSend
from authapi.factors.relying_party import party_of
from authapi.login.browser import address_of, see_other, user_agent_of, with_parameters
from authapi.login.cookies import BROWSER, browser_of, set_cookie
from authapi.pages.application_link import application_link
from authapi.pages.factors import proving
from authapi.pages.factors.setup import address_context, app_context, key_context
from authapi.pages.factors.shown import Trouble, code_field, trouble_of
from authapi.pages.factors.ways import KEYS, Way, first_of, label_of, ways_with_factors, whereabouts_of
from authapi.pages.form_fields import Problem, form_fields
from authapi.pages.hosted_page import hosted_page, with_rate
from authapi.pages.passwordless import BETWEEN_DIGITS, LONGEST_NUMBER, number_field, odd_number, seconds_text
from authapi.pages.spoken import speak_for
from authapi.pages.tenant_page import tenant_page
from authapi.services.account_tickets import TicketOver, TicketUnknown, TicketUsed
from authapi.tenant_settings import sign_in_settings
from foundation.acting import Act, Actor, acting
from foundation.change_context import change_context
from identity.hosts import HostMatch
from identity.languages import DEFAULT
from identity.messages.links import place_after
from identity.messages.numbers import NumberRefused, masked_address, masked_number, normalized_number
from identity.messages.text_senders import countries_for
from identity.models import EnrolledFactor, User
from identity.services.failures import AlreadyExists, Conflict, Invalid

_AT, _WAY, _LIST = "at", "method", "list"
_MAIL = "enrollment_email"
# The number of visible characters of a masked user name, so that its owner recognizes the name.
_READABLE = 2


@dataclass(frozen=True)
class _Visit:
    """A link that was opened in one browser. No other browser can confirm the setup that this browser has begun."""

    request: HttpRequest
    host: HostMatch
    setup: Setup
    kinds: tuple[str, ...]

    @property
    def prover(self) -> Prover:
        user = self.setup.user
        return Prover(
            user,
            whereabouts_of(self.request, user),
            self.setup.bound_to,
            client=self.setup.ticket.client,
            connection=user.connection.name,
            language=get_language() or DEFAULT,
        )

    @property
    def is_form(self) -> bool:
        return self.request.method == "POST"

    def sent(self, name: str) -> str:
        return (self.request.POST if self.is_form else self.request.GET).get(name, "")

    @property
    def kind(self) -> str:
        """The kind of factor that the page sets up. Empty for the list of kinds."""
        return self.sent(_AT) if self.sent(_AT) in self.kinds else ""

    @property
    def factor(self) -> EnrolledFactor | None:
        """The unconfirmed factor."""
        enrollment = open_enrollment(self.prover, self.kind) if self.kind else None
        return enrollment.factor if enrollment is not None else None

    def address(self, **named: str) -> str:
        return with_parameters(PATH, {PARAMETER: self.setup.secret, **named})

    def go_to(self, **named: str) -> HttpResponse:
        """Redirect to a page of this link, so that a reload does not repeat the form."""
        answer = see_other(self.request, self.address(**named))
        # The URL contains the secret of the link, so the browser must not send this URL to other sites in the header `Referer`.
        answer["Cache-Control"], answer["Referrer-Policy"] = "no-store", "no-referrer"
        return answer

    def show(self, template: str, context: dict[str, Any], trouble: Trouble | None) -> HttpResponse:
        problems = [trouble.problem] if trouble else []
        shared = {"page": PATH, "ticket": self.setup.secret, "user": self.setup.user, "problems": problems}
        shown = {**shared, **context, "fields": form_fields(context.get("fields", []), problems)}
        answer = hosted_page(self.request, self.host, template, shown, status=trouble.status if trouble else 200, hides_address=True)
        return with_rate(answer, trouble.rate if trouble else None)


@tenant_page("factor_setup")
def setup_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Let the user of a link choose a kind of factor and set it up. A user with a factor must prove that factor first."""
    secret = (request.POST if request.method == "POST" else request.GET).get(PARAMETER, "")
    browser = browser_of(request)
    try:
        setup = open_setup(tenant_id=host.tenant_id, secret=secret, browser=browser)
        speak_for(setup.ticket.language, host.tenant_id)
        visit = _Visit(request, host, setup, setup.kinds)
        answer = _answered(visit)
    except TicketUsed as used:
        return _over(request, host, "used", used)
    except TicketOver as over:
        return _over(request, host, "expired", over)
    except TicketUnknown:
        return _page(request, host, {"state": "expired"}, status=410)
    set_cookie(answer, BROWSER, browser)
    return answer


def _answered(visit: _Visit) -> HttpResponse:
    if needs_proof(visit.setup):
        return _proof(visit)
    if not visit.is_form:
        return _shown(visit)
    user, ip, agent = visit.setup.user, address_of(visit.request), user_agent_of(visit.request)
    actor = Actor("user", user.user_id, _name_of(user))
    act = Act(actor, ip=ip or None, user_agent=agent, label="Set up a second factor by a link")
    with acting(act), change_context(context_of(visit.host, visit.setup.ticket.client, ip=ip, user_agent=agent)):
        try:
            return _chosen(visit, visit.sent("kind")) if "kind" in visit.request.POST else _filled_in(visit)
        except ProofNeeded:
            return visit.go_to()
        except SetupOver:
            return _listed(visit, Trouble(Problem(_("The setup has ended. Begin again.")), 409))


def _over(request: HttpRequest, host: HostMatch, state: str, over: TicketOver) -> HttpResponse:
    speak_for(over.ticket.language, host.tenant_id)
    return _page(request, host, {"state": state}, status=410)


def _page(request: HttpRequest, host: HostMatch, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    shown = {"application": application_link(None, host=host), **context}
    return hosted_page(request, host, "factor_setup", shown, status=status, hides_address=True)


# --- The proof of an existing factor ------------------------------------------------------------------------------------------


def _proof(visit: _Visit) -> HttpResponse:
    """Show the page on which the user proves an existing factor. A code is sent only when the user presses a button."""
    ways, named = ways_with_factors(visit.host, visit.setup.user), visit.sent(_WAY)
    way = next((each for each in ways if each.name == named), None) or first_of(ways)
    if way is None or (named == _LIST and not visit.is_form):
        return _ways_listed(visit, ways)
    if not visit.is_form or not {"again", "code", "credential"} & set(visit.request.POST):
        return _asked(visit, ways, way)
    if "again" in visit.request.POST:
        return _proof_sent(visit, ways, way)
    typed = visit.sent("credential" if way.kind in KEYS else "code")
    if not typed.strip():
        return _asked(visit, ways, way, Trouble(Problem(proving.nothing_typed(way), "" if way.kind in KEYS else "code"), 400))
    try:
        proving.proven_by(visit.prover, way, typed, host=visit.host)
    except (WrongProof, TooManyGuesses) as error:
        return _asked(visit, ways, way, trouble_of(error, kind=way.kind))
    note_proof(visit.setup)
    return visit.go_to()


def _proof_sent(visit: _Visit, ways: list[Way], way: Way) -> HttpResponse:
    trouble = _sending(visit, way.factor, lambda factor: send_code(visit.prover, factor)) if way.factor is not None else None
    return _asked(visit, ways, way, trouble) if trouble else visit.go_to(**{_WAY: way.name, "again": "1"})


def _ways_listed(visit: _Visit, ways: list[Way]) -> HttpResponse:
    found = [{"label": way.label, "address": visit.address(**{_WAY: way.name})} for way in ways]
    problem = _("None of your methods can be used right now. Try again later, or contact the people who run the application.")
    return visit.show("mfa_list", {"ways": found}, None if found else Trouble(Problem(problem), 503))


def _asked(visit: _Visit, ways: list[Way], way: Way, trouble: Trouble | None = None) -> HttpResponse:
    context: dict[str, Any] = {
        "way": way.name,
        "kind": way.kind,
        "others": visit.address(**{_WAY: _LIST}) if len(ways) > 1 else "",
        "fields": [] if way.kind in KEYS else [code_field(is_sent=way.factor is not None)],
    }
    if way.kind in KEYS:
        return visit.show("mfa_key", {**context, **proving.key_context(visit.prover, way, host=visit.host)}, trouble)
    if way.factor is not None:
        is_sent_again = "again" in visit.request.GET and trouble is None
        context |= proving.message_context(visit.prover, way.factor, is_sent_again=is_sent_again)
    return visit.show("mfa_code", context, trouble)


# --- The setup ----------------------------------------------------------------------------------------------------------------


def _chosen(visit: _Visit, kind: str) -> HttpResponse:
    """Start to set up a kind of factor. Without a kind, show the list of kinds again."""
    if kind not in visit.kinds:
        return visit.go_to()
    try:
        if kind == TOTP:
            begin_app(visit.setup, prover=visit.prover)
        elif kind == EMAIL:
            begin_address(visit.setup, prover=visit.prover, kind=kind)
    except (CannotSend, TooManyMessages) as error:
        return _listed(visit, trouble_of(error))
    except (AlreadyExists, Conflict, Invalid):
        return _listed(visit, Trouble(Problem(_no_kind()), 409))
    # For a phone, show the field for the number first, even if another phone is still unconfirmed.
    return visit.go_to(**{_AT: kind}, **({"other": "1"} if kind == PHONE else {}))


def _filled_in(visit: _Visit) -> HttpResponse:
    """Process the form of the chosen kind."""
    if not visit.kind:
        return _listed(visit)
    if visit.kind == PHONE and "phone_number" in visit.request.POST:
        return _number_taken(visit)
    if visit.kind not in KEYS and visit.factor is None:
        raise SetupOver
    if "again" in visit.request.POST and visit.kind in (PHONE, EMAIL):
        trouble = _sending(visit, visit.factor, lambda factor: send_code(visit.prover, factor, purpose=ENROLL))
        return _shown(visit, trouble) if trouble else visit.go_to(**{_AT: visit.kind})
    return _proof_taken(visit)


def _number_taken(visit: _Visit) -> HttpResponse:
    typed = visit.sent("phone_number").strip()[: LONGEST_NUMBER + 1]
    try:
        number = normalized_number(typed, countries=countries_for(visit.host.tenant_id))
        begin_address(visit.setup, prover=visit.prover, kind=PHONE, address=number)
    except (NumberRefused, Invalid):
        return _number_asked(visit, typed, Trouble(Problem(odd_number(typed), "phone_number"), 400))
    except AlreadyExists:
        return _number_asked(visit, typed, Trouble(Problem(_("This method is set up already."), "phone_number"), 409))
    except (CannotSend, TooManyMessages) as error:
        return _number_asked(visit, typed, trouble_of(error))
    except Conflict:
        return _listed(visit, Trouble(Problem(_no_kind()), 409))
    return visit.go_to(**{_AT: PHONE})


def _sending(visit: _Visit, factor: EnrolledFactor | None, send: Callable[[EnrolledFactor], object]) -> Trouble | None:
    """Send another code, if the pause after the last code is over. Return the problem if no code was sent."""
    seconds = seconds_to_wait(visit.prover, factor) if factor is not None else 0
    if factor is None or seconds:
        return Trouble(Problem(seconds_text(seconds)), 429)
    try:
        send(factor)
    except (CannotSend, TooManyMessages) as error:
        return trouble_of(error)
    return None


def _proof_taken(visit: _Visit) -> HttpResponse:
    try:
        if visit.kind in KEYS:
            answer, party = visit.sent("credential"), party_of(visit.host)
            return _done(visit, add_made_key(visit.setup, prover=visit.prover, kind=visit.kind, answer=answer, party=party))
        code = visit.sent("code").translate(BETWEEN_DIGITS)
        return _done(visit, confirm(visit.setup, prover=visit.prover, kind=visit.kind, code=code))
    except (WrongProof, TooManyGuesses) as error:
        return _shown(visit, trouble_of(error, kind=visit.kind))
    except AlreadyExists:
        return _shown(visit, Trouble(Problem(_("This key is set up for an account already.")), 409))
    except Conflict:
        return _listed(visit, Trouble(Problem(_no_kind()), 409))


def _done(visit: _Visit, done: SetUp) -> HttpResponse:
    """Show that the factor was set up, and a new recovery code if one was created. Opening the link again does not show this page."""
    place = place_after(visit.host.tenant_id, _MAIL, email=visit.setup.user.email or "")
    return _page(visit.request, visit.host, {"state": "done", "code": done.recovery_code, "place": place})


def _shown(visit: _Visit, trouble: Trouble | None = None) -> HttpResponse:
    kind, factor = visit.kind, visit.factor
    if kind in KEYS:
        return _kind_shown(visit, "mfa_enroll_key", key_context(visit.prover, party_of(visit.host), kind, purpose=ENROLL_KEY), trouble)
    if kind == PHONE and (factor is None or "other" in visit.request.GET):
        return _number_asked(visit, "", trouble)
    if factor is None:
        return _listed(visit, trouble)
    if kind == TOTP:
        return _kind_shown(visit, "mfa_enroll_app", app_context(visit.setup.user, factor), trouble)
    return _kind_shown(visit, "mfa_enroll_address", address_context(visit.prover, factor), trouble)


def _number_asked(visit: _Visit, typed: str, trouble: Trouble | None) -> HttpResponse:
    label = custom_text("mfa-sms.mfa-sms-enrollment.placeholder", _("Phone number"))
    return _kind_shown(visit, "mfa_enroll_address", {"fields": [number_field(label, typed)]}, trouble)


def _kind_shown(visit: _Visit, template: str, context: dict[str, Any], trouble: Trouble | None) -> HttpResponse:
    return visit.show(template, {**context, "kind": visit.kind, "has_others": len(visit.kinds) > 1}, trouble)


def _listed(visit: _Visit, trouble: Trouble | None = None) -> HttpResponse:
    if not visit.kinds and trouble is None:
        trouble = Trouble(Problem(_no_kind()), 503)
    context = {
        "tenant": sign_in_settings(visit.host.tenant_id).friendly_name or visit.host.tenant_id,
        "account": _masked(visit.setup.user),
        "kinds": [{"name": kind, "label": label_of(kind)} for kind in visit.kinds],
    }
    return visit.show("mfa_enroll", context, trouble)


def _masked(user: User) -> str:
    """Return the masked name of the user, so that a link that was sent to a wrong recipient reveals little."""
    if user.email:
        return masked_address(user.email)
    if user.phone_number:
        return masked_number(user.phone_number)
    return f"{_name_of(user)[:_READABLE]}…"


def _name_of(user: User) -> str:
    return user.email or user.username or user.phone_number or user.user_id


def _no_kind() -> str:
    return _("No method can be set up right now. Try again later, or contact the people who run the application.")
