"""Enrolls a factor through an application. An enrollment starts with a secret or a sent code; the first correct code confirms it.

An enrollment belongs to the transaction or session that started it. Another transaction or session of the same user cannot confirm it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from authapi.factors.challenges import ENROLL, Proven, Prover, WrongProof, check_code, counting, judged, new_challenge, send_code
from authapi.factors.kinds import TOTP, is_second_to
from authapi.factors.settings import factor_settings
from authapi.models import FactorChallenge
from authapi.tenant_settings import sign_in_settings
from foundation.database.transactions import unit_of_work
from foundation.secrets import totp
from identity.factors import user_factors
from identity.factors.user_factors import OPEN_FOR, begin_enrolment, confirm_enrolment, promise_recovery_code
from identity.models import EnrolledFactor
from identity.services.failures import Conflict, NotFound


@dataclass(frozen=True)
class Association:
    """An unconfirmed factor. Its secrets are shown only once. A field is empty if this kind of factor does not have it."""

    factor: EnrolledFactor
    secret: str = field(default="", repr=False)
    address: str = field(default="", repr=False)
    handle: str = field(default="", repr=False)
    recovery_code: str = field(default="", repr=False)


@unit_of_work
def associate_app(prover: Prover, *, promises: bool = True) -> Association:
    """Start the enrollment of an authenticator app. Raises `Conflict` if the user has too many factors.

    With `promises`, the recovery code is created and returned now. Without `promises`, it is created when the app is confirmed.
    """
    user, secret = prover.user, totp.new_secret()
    factor = begin_enrolment(tenant_id=user.tenant_id, user_id=user.user_id, kind=TOTP, secret=secret)
    row = new_challenge(prover, factor=factor, purpose=ENROLL)
    row.expires_at = factor.created_at + OPEN_FOR
    row.save(force_insert=True)
    account = user.email or user.username or user.phone_number or user.user_id
    address = totp.enrolment_address(secret, issuer=sign_in_settings(user.tenant_id).friendly_name, account=account)
    return Association(factor, secret, address, recovery_code=_promised(prover, factor) if promises else "")


@unit_of_work
def associate_address(prover: Prover, kind: str, address: str, *, promises: bool = True) -> Association:
    """Start the enrollment of a phone or an email address, and send it a code. `promises` is as in `associate_app`.

    Raises `AlreadyExists`, `Conflict`, `Invalid`, `CannotSend` and `TooManyMessages`.
    """
    user = prover.user
    factor = begin_enrolment(tenant_id=user.tenant_id, user_id=user.user_id, kind=kind, address=address)
    sent = send_code(prover, factor, purpose=ENROLL)
    return Association(factor, handle=sent.handle, recovery_code=_promised(prover, factor) if promises else "")


def confirm_app(prover: Prover, code: str) -> Proven:
    """Confirm the app whose enrollment this transaction or session started. Raises `WrongProof` and `TooManyGuesses`."""

    def judge() -> Proven | None:
        row = open_enrollment(prover, TOTP)
        if row is None or row.factor is None:
            return None
        step = totp.accepted_step(row.factor.secret(), code, moment=time.time(), last_step=0)
        return _confirmed(prover, row.factor, step=step) if step is not None else None

    return judged(prover, code, judge)


def confirm_address(prover: Prover, challenge: FactorChallenge, code: str) -> Proven:
    """Confirm the phone or email address that received a code. Raises `WrongProof` and `TooManyGuesses`."""
    if challenge.factor is None:
        raise NotFound("The enrollment has expired. Begin again.")
    return confirm_sent(prover, challenge.factor, code, challenge=challenge)


def confirm_sent(prover: Prover, factor: EnrolledFactor, code: str, *, challenge: FactorChallenge | None = None) -> Proven:
    """Confirm a phone or email address with a code from one of the latest messages. With `challenge`, only the code in the message of this
    challenge is accepted.

    Raises `WrongProof` and `TooManyGuesses`.
    """
    check_code(prover, factor, code, purpose=ENROLL, challenge=challenge)
    confirmed = _confirmed(prover, factor)
    if confirmed is None:
        raise WrongProof
    return confirmed


def open_enrollment(prover: Prover, kind: str) -> FactorChallenge | None:
    """Return the open enrollment of a factor of this kind in this transaction or session; None if no enrollment is open."""
    rows = counting(prover).filter(purpose=ENROLL, factor__kind=kind, factor__is_confirmed=False)
    return rows.select_related("factor").order_by("-pk").first()


def _confirmed(prover: Prover, factor: EnrolledFactor, *, step: int = 0) -> Proven | None:
    user = prover.user
    try:
        confirmed = confirm_enrolment(tenant_id=user.tenant_id, user_id=user.user_id, device=factor.device, step=step)
    except (NotFound, Conflict):
        # The enrollment has expired, was replaced, or was confirmed by an earlier request.
        return None
    return Proven(factor.kind, confirmed.factor, confirmed.recovery_code)


def _promised(prover: Prover, factor: EnrolledFactor) -> str:
    user = prover.user
    if not factor_settings(user.tenant_id).has_recovery_codes:
        return ""
    return promise_recovery_code(tenant_id=user.tenant_id, user_id=user.user_id, device=factor.device)


def has_usable_factor(prover: Prover, methods: frozenset[str]) -> bool:
    """Tell whether the user has a factor that the tenant offers, and that proves something that `methods` do not prove."""
    offered = factor_settings(prover.user.tenant_id).kinds
    return any(factor.kind in offered and is_second_to(factor.kind, methods) for factor in user_factors.factors_of(prover.user))
