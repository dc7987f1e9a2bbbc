"""Passkeys in a login: the passkey parts of the login page, the check of a passkey, and the page that offers to create one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from authapi.accounts.passkey_login import KnownPerson, PasskeyAttempt, log_in_with_passkey
from authapi.factors.challenges import WrongProof, key_challenge, open_key_challenge
from authapi.factors.kinds import PASSKEY
from authapi.factors.passkey_ceremonies import challenge_of_login, take_challenge_of_login
from authapi.factors.passkey_options import has_autofill, has_button, offers_after_login, passkey_connections
from authapi.factors.relying_party import party_of
from authapi.failures import RequestRefused
from authapi.login import flow
from authapi.login.decision import Step, next_step
from authapi.login.flow import PAGES
from authapi.login.login import Login
from authapi.login.passkey_offers import ANSWERED, CAN_MAKE, FIELD, decline_for_a_while
from authapi.login.transactions import bind, note_progress
from authapi.models import Session
from authapi.pages.factors.shown import Trouble
from authapi.pages.factors.ways import KEYS, prover_of
from authapi.pages.form_fields import Field, Problem, form_fields
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from foundation.database.transactions import unit_of_work
from identity.factors import ceremonies
from identity.factors.ceremonies import ANSWER_MOST_CHARACTERS, Account, CeremonyRefused
from identity.factors.user_factors import LONGEST_NAME, add_key, credentials_of, user_handle
from identity.hosts import HostMatch
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound
from identity.services.users import locked_user

PATH = PAGES[Step.PASSKEY]
CREDENTIAL = "credential"
SCRIPT = "theme/factor_keys.js"
# Purpose of the offer's challenge. Challenges of a login or of an enrollment have other purposes, so their answers are not valid for the
# offer.
_PURPOSE = "passkey"
_LATER, _NEVER = "later", "never"


class _Over(Exception):
    """The offer has ended: the session has ended, or the user was blocked or has a passkey by now."""


# --- The login page ----------------------------------------------------------------------------------------------------------------


def passkey_parts(login: Login) -> dict[str, Any]:
    """Return the context of the login page for passkeys; empty if no connection of the login accepts passkeys."""
    found = passkey_connections(login.connections)
    if not found:
        return {}
    party = party_of(login.host)
    return {
        "passkey": {
            "options": json.dumps(ceremonies.use_options(party, challenge_of_login(login.row, relying_party=party.id))),
            "has_button": any(has_button(one) for one in found),
            "has_autofill": any(has_autofill(one) for one in found),
        },
        "passkey_words": passkey_words(),
        **ability_parts(login),
        "scripts": [SCRIPT],
    }


def ability_parts(login: Login) -> dict[str, Any]:
    """Return the context of a form in which the browser reports that it supports passkeys.

    Empty if this login cannot offer the user to create a passkey.
    """
    is_offered = any(offers_after_login(one) for one in login.connections)
    return {"ability_field": FIELD, "scripts": [SCRIPT]} if is_offered else {}


def note_ability(login: Login) -> None:
    """Store whether the browser supports passkeys, before the login continues."""
    if login.http_request.POST.get(FIELD) == "1":
        note_progress(login.row, **{CAN_MAKE: True})


def person_of_passkey(login: Login) -> KnownPerson:
    """Return the user of the passkey in the form. Raises `LoginRefused`."""
    party = party_of(login.host)
    return log_in_with_passkey(
        PasskeyAttempt(
            tenant_id=login.host.tenant_id,
            client=login.client,
            connections=tuple(login.connections),
            party=party,
            answer=login.http_request.POST.get(CREDENTIAL, "")[: ANSWER_MOST_CHARACTERS + 1],
            challenge=take_challenge_of_login(login.row, relying_party=party.id),
            ip=login.address,
            user_agent=login.user_agent,
            email=login.invited_email,
        )
    )


def passkey_words() -> dict[str, str]:
    """Return the texts that the script shows if no passkey was used or created."""
    return {
        "cancelled": _("No passkey was used: you canceled, it took too long, or this device has none for this page. Try again."),
        "present": _("This device has a passkey for your account already."),
    }


# --- The offer ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Visit:
    """A request to the page of the offer. Its login is complete except for the answer to the client."""

    login: Login
    handle: str
    session: Session

    def go_on(self) -> HttpResponse:
        """Store that the user has answered, and continue the login."""
        bind(self.login.row, self.session)
        note_progress(self.login.row, **{ANSWERED: True})
        return flow.advance(self.login, handle=self.handle)


@tenant_page("passkey")
def offer_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Offer to create a passkey, and process the answer."""
    login, handle = opened_login(request, host)
    try:
        session = login.session
        if session is None or next_step(login.wish, login.situation()) is not Step.PASSKEY:
            return flow.advance(login, handle=handle)
        visit, sent = _Visit(login, handle, session), request.POST
        # Another user may have logged in since the page was shown.
        if request.method != "POST" or sent.get("user") != session.user.user_id:
            return _offer(visit)
        if sent.get("answer") in (_LATER, _NEVER):
            answer = visit.go_on()
            if sent["answer"] == _NEVER:
                decline_for_a_while(answer)
            return answer
        return _made(visit)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _made(visit: _Visit) -> HttpResponse:
    sent = visit.login.http_request.POST
    try:
        _added(visit, sent.get(CREDENTIAL, "")[: ANSWER_MOST_CHARACTERS + 1], sent.get("name", ""))
    except WrongProof:
        return _offer(visit, Trouble(Problem(_("No passkey was created. Try again, or continue without one.")), 400))
    except AlreadyExists:
        return _offer(visit, Trouble(Problem(_("This passkey is set up for an account already.")), 409))
    except Invalid:
        problem = Problem(_("A name has at most %(count)d characters.") % {"count": LONGEST_NAME}, "name")
        return _offer(visit, Trouble(problem, 400), name=sent.get("name", ""))
    except (_Over, Conflict, NotFound):
        return flow.advance(visit.login, handle=visit.handle)
    return visit.go_on()


def _added(visit: _Visit, answer: str, name: str) -> None:
    """Add the passkey that the browser created. Raises `WrongProof`, `_Over`, and the errors of `add_key`."""
    user, party = visit.session.user, party_of(visit.login.host)
    challenge = open_key_challenge(prover_of(visit.login, visit.session), purpose=_PURPOSE)
    if challenge is None:
        raise WrongProof
    try:
        made = ceremonies.verified_registration(answer, party, challenge=challenge)
    except CeremonyRefused as refused:
        raise WrongProof from refused

    @unit_of_work
    def add() -> None:
        held, session = locked_user(tenant_id=user.tenant_id, user_id=user.user_id), visit.session
        alive = Session.objects.of(session.tenant_id).filter(pk=session.pk, digest=session.digest, idle_expires_at__gt=timezone.now())
        # The offer is checked again while the row of the user is locked, so that only one of two concurrent windows adds a passkey.
        if held.blocked or not alive.exists() or not visit.login.situation().offers_passkey:
            raise _Over
        add_key(tenant_id=user.tenant_id, user_id=user.user_id, kind=PASSKEY, made=made, relying_party=party.id, name=name)

    add()


def _offer(visit: _Visit, trouble: Trouble | None = None, *, name: str = "") -> HttpResponse:
    user, party = visit.session.user, party_of(visit.login.host)
    options = ceremonies.registration_options(
        party,
        Account(user_handle(user), user.email or user.username or user.phone_number or user.user_id, user.name or ""),
        key_challenge(prover_of(visit.login, visit.session), purpose=_PURPOSE),
        existing=credentials_of(user, (*KEYS, PASSKEY), relying_party=party.id),
    )
    problems = [trouble.problem] if trouble else []
    field = Field(
        "name",
        _("Name of the passkey"),
        value=name[: LONGEST_NAME + 1],
        maxlength=LONGEST_NAME,
        is_required=False,
        hints=(_("Helps you tell your passkeys apart. Example: the name of this device."),),
    )
    context: dict[str, Any] = {
        "user": user,
        "options": json.dumps(options),
        "words": passkey_words(),
        "problems": problems,
        "fields": form_fields([field], problems),
        "scripts": [SCRIPT],
    }
    return render_page(visit.login, visit.handle, "passkey", context, status=trouble.status if trouble else 200)
