"""The pages on which a user adds a second factor or a passkey. Each enrollment belongs to the session that began it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from authapi.accounts.self_service.adding import (
    Added,
    ProofNeeded,
    SetupOver,
    add_made_key,
    begin_address,
    begin_app,
    confirm,
    kinds_to_add,
    may_add_passkey,
    purpose_of,
)
from authapi.accounts.self_service.factors import PASSKEYS, rename
from authapi.factors.association import open_enrollment
from authapi.factors.challenges import ENROLL, Prover, TooManyGuesses, WrongProof, bound_to_session, seconds_to_wait, send_code
from authapi.factors.kinds import EMAIL, PASSKEY, PHONE, TOTP
from authapi.factors.limits import TooManyMessages
from authapi.factors.messages import CannotSend
from authapi.factors.relying_party import party_of
from authapi.pages.factors.setup import address_context, app_context, key_context
from authapi.pages.factors.shown import Trouble, trouble_of
from authapi.pages.factors.ways import KEYS, label_of, whereabouts_of
from authapi.pages.form_fields import Field, Problem, form_fields
from authapi.pages.passwordless import BETWEEN_DIGITS, LONGEST_NUMBER, number_field, odd_number, seconds_text
from authapi.protocols.account.visit import Visit
from foundation.json_values import storable
from identity.factors.user_factors import LONGEST_NAME, factor_named
from identity.languages import DEFAULT
from identity.messages.numbers import NumberRefused, normalized_number
from identity.messages.text_senders import countries_for
from identity.models import EnrolledFactor
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound

TWO_STEP, ADD, PASSKEY_LIST = "two-step", "two-step/add", "passkeys"
ADD_PASSKEY, NAME_PASSKEY = "passkeys/add", "passkeys/name"
_OVER = "setup-over"


def offers_kinds(visit: Visit) -> bool:
    """Tell whether the user can add a second factor of at least one kind."""
    return bool(kinds_to_add(visit.client, visit.user))


def offers_kind(kind: str) -> Callable[[Visit], bool]:
    """Return a function that tells whether the user can add a factor of this kind."""
    return lambda visit: kind in kinds_to_add(visit.client, visit.user)


def offers_passkey(visit: Visit) -> bool:
    """Tell whether the user can add a passkey."""
    return may_add_passkey(visit.user)


def place_for(kind: str) -> str:
    """Return the name of the page that sets up a factor of this kind."""
    return f"{ADD}/{kind}"


def choice_view(visit: Visit) -> HttpResponse:
    """Show the kinds of factor that the user can add, or begin the enrollment of the chosen kind."""
    kinds, kind = kinds_to_add(visit.client, visit.user), visit.chosen("kind")
    if visit.is_form and kind in kinds:
        trouble = _began(visit, kind)
        if trouble is None:
            return visit.go_to(place_for(kind))
    else:
        trouble = None
    return _shown(visit, "add_method", {"kinds": [{"name": one, "label": label_of(one)} for one in kinds]}, trouble)


def view_of(kind: str) -> Callable[[Visit], HttpResponse]:
    """Return the view that sets up a factor of this kind."""
    return lambda visit: _key_page(visit, kind) if kind in KEYS else _code_page(visit, kind)


def passkey_view(visit: Visit) -> HttpResponse:
    """Add a passkey that the browser creates. On the next page, the user names the passkey."""
    return _key_page(visit, PASSKEY)


def name_view(visit: Visit) -> HttpResponse:
    """Show the form for the name of a passkey that was just added, and save the name."""
    device = visit.chosen("device") if visit.is_form else storable(visit.request.GET.get("device", ""))
    factor = _own_passkey(visit, device)
    if factor is None:
        return visit.go_to(PASSKEY_LIST)
    problems = []
    if visit.is_form:
        try:
            rename(visit.own, device=device, kinds=PASSKEYS, name=visit.typed("name", longest=LONGEST_NAME))
            return visit.done("saved", section=PASSKEY_LIST)
        except NotFound:
            return visit.go_to(PASSKEY_LIST)
        except Invalid:
            problems = [Problem(_("Enter a shorter name, without unusual characters."), "name")]
    hint = _("Optional. Helps you tell your passkeys apart. Example: the name of this device.")
    field = Field("name", _("Name of the passkey"), value=factor.name, maxlength=LONGEST_NAME, is_required=False, hints=(hint,))
    return visit.show("passkey_name", {"fields": form_fields([field], problems), "device": device}, problems=problems)


def _own_passkey(visit: Visit, device: str) -> EnrolledFactor | None:
    try:
        factor = factor_named(visit.user, device)
    except NotFound:
        return None
    return factor if factor.kind == PASSKEY else None


def _prover(visit: Visit) -> Prover:
    """Return the prover of this session, which binds an enrollment to the session."""
    session = visit.session
    return Prover(
        session.user,
        whereabouts_of(visit.request, session.user),
        bound_to_session(session.pk),
        client=visit.client,
        connection=session.connection.name,
        language=get_language() or DEFAULT,
    )


def _began(visit: Visit, kind: str, address: str = "") -> Trouble | None:
    """Begin the enrollment of a kind of factor. Return the problem to show; None if the page of this kind can be shown."""
    if kind in KEYS or (kind == PHONE and not address):
        return None
    try:
        if kind == TOTP:
            begin_app(visit.own, prover=_prover(visit))
        else:
            begin_address(visit.own, prover=_prover(visit), kind=kind, address=address)
    except (ProofNeeded, SetupOver):
        # No problem to show here: the page that sets up this kind requests a new login, or shows that the kind is unavailable.
        return None
    except (CannotSend, TooManyMessages) as error:
        return trouble_of(error)
    except AlreadyExists:
        return Trouble(Problem(_("This method is set up already."), "phone_number" if kind == PHONE else ""), 409)
    except Conflict:
        return _too_many()
    return None


def _code_page(visit: Visit, kind: str) -> HttpResponse:
    """Show the page that sets up an authenticator app, a phone or an email address, and check the code of this factor."""
    prover = _prover(visit)
    enrollment = open_enrollment(prover, kind)
    factor = enrollment.factor if enrollment is not None else None
    sent = visit.request.POST if visit.is_form else {}
    if kind == PHONE and ("phone_number" in sent or factor is None or "other" in visit.request.GET):
        return _number_taken(visit) if "phone_number" in sent else _number_asked(visit)
    if factor is None:
        return visit.failed(_OVER, section=ADD)
    if "again" in sent and kind in (PHONE, EMAIL):
        trouble = _sent_again(prover, factor)
        return _code_asked(visit, prover, factor, trouble) if trouble else visit.go_to(visit.section.name)
    if not visit.is_form:
        return _code_asked(visit, prover, factor)
    try:
        return _finished(visit, confirm(visit.own, prover=prover, kind=kind, code=sent.get("code", "").translate(BETWEEN_DIGITS)))
    except ProofNeeded:
        return visit.go_to(visit.section.name)
    except SetupOver:
        return visit.failed(_OVER, section=ADD)
    except (WrongProof, TooManyGuesses) as error:
        return _code_asked(visit, prover, factor, trouble_of(error, kind=kind))


def _number_taken(visit: Visit) -> HttpResponse:
    typed = visit.typed("phone_number", longest=LONGEST_NUMBER)
    try:
        trouble = _began(visit, PHONE, normalized_number(typed, countries=countries_for(visit.host.tenant_id)))
    except (NumberRefused, Invalid):
        trouble = Trouble(Problem(odd_number(typed), "phone_number"), 400)
    return _number_asked(visit, typed, trouble) if trouble else visit.go_to(visit.section.name)


def _number_asked(visit: Visit, typed: str = "", trouble: Trouble | None = None) -> HttpResponse:
    return _shown(visit, "add_address", {"kind": PHONE, "fields": [number_field(_("Phone number"), typed)]}, trouble)


def _sent_again(prover: Prover, factor: EnrolledFactor) -> Trouble | None:
    seconds = seconds_to_wait(prover, factor)
    if seconds:
        return Trouble(Problem(seconds_text(seconds)), 429)
    try:
        send_code(prover, factor, purpose=ENROLL)
    except (CannotSend, TooManyMessages) as error:
        return trouble_of(error)
    return None


def _code_asked(visit: Visit, prover: Prover, factor: EnrolledFactor, trouble: Trouble | None = None) -> HttpResponse:
    if factor.kind == TOTP:
        return _shown(visit, "add_app", app_context(prover.user, factor), trouble)
    return _shown(visit, "add_address", {"kind": factor.kind, **address_context(prover, factor)}, trouble)


def _key_page(visit: Visit, kind: str) -> HttpResponse:
    prover, party, trouble = _prover(visit), party_of(visit.host), None
    if visit.is_form:
        answer = visit.request.POST.get("credential", "")
        try:
            return _finished(visit, add_made_key(visit.own, prover=prover, kind=kind, answer=answer, party=party))
        except ProofNeeded:
            return visit.go_to(visit.section.name)
        except SetupOver:
            return visit.failed(_OVER, section=visit.home.name)
        except WrongProof as error:
            trouble = trouble_of(error, kind=kind)
        except AlreadyExists:
            trouble = Trouble(Problem(_taken_text(kind)), 409)
        except Conflict:
            trouble = _too_many()
    return _shown(visit, "add_key", {"kind": kind, **key_context(prover, party, kind, purpose=purpose_of(kind))}, trouble)


def _finished(visit: Visit, added: Added) -> HttpResponse:
    """Show the new recovery code if this is the user's first factor. Otherwise go back to the list, or to the page that names a passkey."""
    if added.factor.kind == PASSKEY:
        return visit.done("passkey-added", section=NAME_PASSKEY, device=added.factor.device)
    if added.recovery_code:
        answer = visit.show("recovery_code", {"code": added.recovery_code, "done": _("The method is added.")})
    else:
        answer = visit.done("added", section=TWO_STEP)
    return visit.keep_session(answer, added.cookie)


def _taken_text(kind: str) -> str:
    return _("This passkey is set up for an account already.") if kind == PASSKEY else _("This key is set up for an account already.")


def _too_many() -> Trouble:
    return Trouble(Problem(_("Your account has as many methods and passkeys as it can have. Remove one that you do not use.")), 409)


def _shown(visit: Visit, template: str, context: dict[str, Any], trouble: Trouble | None) -> HttpResponse:
    problems = [trouble.problem] if trouble else []
    shown = {**context, "fields": form_fields(context.get("fields", []), problems)}
    rate, status = (trouble.rate, trouble.status) if trouble else (None, 400)
    return visit.show(template, shown, problems=problems, rate=rate, status=status)
