"""Checks the proof that an account submits: a password, a code, a recovery code or the signature of a passkey."""

from __future__ import annotations

import time

import structlog
from django.conf import settings
from django.http import HttpRequest

from config.console.staff_account import challenges, tries
from config.console.staff_account.challenges import Purpose
from config.console.staff_account.pages import address_of
from foundation.acting import Act, Actor, acting
from foundation.secrets import totp
from identity.admin.assurance import Proof
from identity.factors import passkeys, staff_factors
from identity.models import Staff, StaffFactor

CREDENTIAL = "credential"
WRONG_CODE = "The code is wrong or was used before. Enter the code that the app shows now; it changes every 30 seconds."
WRONG_PASSWORD = "The password is wrong. Try again."  # noqa: S105  (a sentence)
WRONG_PASSKEY = "The passkey was not accepted. Try again, or log in another way."

_logger = structlog.get_logger(__name__)


class NotProven(Exception):
    """The submitted proof is wrong. The message is shown on the page."""


def proven_by_password(staff: Staff, password: str) -> Proof:
    """Check the password of a logged-in account. Raises `NotProven`."""
    _count(staff)
    if not staff.check_password(password):
        raise _refused(staff, Proof.PASSWORD, WRONG_PASSWORD)
    return Proof.PASSWORD


def proven_by_code(request: HttpRequest, staff: Staff, code: str) -> Proof:
    """Check a code of the account's apps, or a recovery code; each code works once. Raises `NotProven`."""
    _count(staff)
    typed = "".join(code.split())
    if len(typed) == totp.DIGITS and typed.isascii() and typed.isdigit():
        if not staff_factors.use_totp(staff, typed, moment=time.time()):
            raise _refused(staff, Proof.CODE, WRONG_CODE)
        return Proof.CODE
    # During a login, the request has no actor yet. Make the account the actor, because the audit entry about a used recovery code names the
    # actor.
    by = Actor("staff", str(staff.pk), staff.email)
    place = address_of(request, settings.TRUSTED_PROXIES)
    with acting(Act(by, ip=place or None, user_agent=request.META.get("HTTP_USER_AGENT", ""))):
        if not staff_factors.use_recovery_code(staff, typed):
            raise _refused(staff, Proof.RECOVERY_CODE, WRONG_CODE)
    return Proof.RECOVERY_CODE


def proven_by_passkey(request: HttpRequest, purpose: Purpose, staff: Staff | None = None) -> Staff:
    """Check the signature of a passkey and return its account.

    If `staff` is given, the passkey must belong to this account. Raises `NotProven`.
    """
    answer = request.POST.get(CREDENTIAL, "")
    try:
        challenge = challenges.taken(request, purpose)
        known = StaffFactor.objects.filter(kind=StaffFactor.Kind.PASSKEY, credential_id=passkeys.credential_in(answer))
        factor = (known if staff is None else known.filter(staff=staff)).select_related("staff__tenant").first()
        if factor is None:
            raise passkeys.PasskeyRefused
        count = passkeys.verified_use(answer, factor, challenge=challenge, origin=passkeys.origin_of(request.get_host()))
        if not staff_factors.use_passkey(factor, sign_count=count):
            raise passkeys.PasskeyRefused
    except passkeys.PasskeyRefused as refusal:
        raise _refused(staff, Proof.PASSKEY, WRONG_PASSKEY) from refusal
    return factor.staff


def _count(staff: Staff) -> None:
    if not tries.may_try(staff):
        _logger.warning("staff proof not checked", staff_id=staff.pk, why="too many attempts")
        raise NotProven(tries.TOO_MANY)


def _refused(staff: Staff | None, by: Proof, sentence: str) -> NotProven:
    _logger.warning("staff proof refused", staff_id=staff.pk if staff else None, by=by.value)
    return NotProven(sentence)
