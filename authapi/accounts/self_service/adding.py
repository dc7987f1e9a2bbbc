"""Lets users add a second factor or a passkey to their own account. The start and the confirmation of an enrollment require the same
session and a recent login.

The login is checked again with the user locked: if two sessions add a first factor at the same time, the later session must prove the
factor of the earlier session.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from authapi.accounts.self_service.own_act import OwnAct, own_act
from authapi.accounts.self_service.proofs import is_proven
from authapi.factors.association import associate_address, associate_app, confirm_app, confirm_sent, open_enrollment
from authapi.factors.challenges import ENROLL_KEY, ENROLL_PASSKEY, Prover, TooManyGuesses, WrongProof, hold, open_key_challenge
from authapi.factors.demands import policy_of, usable_kinds
from authapi.factors.kinds import EMAIL, KINDS, PASSKEY, TOTP, methods_of
from authapi.factors.passkey_options import takes_passkeys
from authapi.factors.settings import factor_settings
from authapi.login.sessions import add_proof
from authapi.models import Client, SecondFactorPolicy
from authapi.tokens.contexts import has_second_factor
from identity.factors import ceremonies
from identity.factors.ceremonies import ANSWER_MOST_CHARACTERS, CeremonyRefused, RelyingParty
from identity.factors.user_factors import add_key, factors_of
from identity.models import EnrolledFactor, User
from identity.services.failures import AlreadyExists, Conflict

_Refused = WrongProof | TooManyGuesses | AlreadyExists | Conflict


class ProofNeeded(Exception):
    """The session no longer proves the user: another session added a second factor, or the login is too old."""


class SetupOver(Exception):
    """The setup is not in progress in this session: it timed out, a newer setup replaced it, or this kind of factor is switched off."""


@dataclass(frozen=True)
class Added:
    """A confirmed factor. `recovery_code` is set only for the first factor of the user. `cookie` is set only if the session has a new
    cookie."""

    factor: EnrolledFactor
    recovery_code: str = field(default="", repr=False)
    cookie: str = field(default="", repr=False)


def kinds_to_add(client: Client, user: User) -> tuple[str, ...]:
    """Return the kinds of second factors that a user can add now, strongest first.

    Codes by mail are sent only to the verified email address of the profile. A kind that repeats the user's login method is left out,
    because it proves nothing more. A tenant that never requires second factors offers no kind.
    """
    if policy_of(client, None) is SecondFactorPolicy.NEVER:
        return ()
    kinds = (kind for kind in usable_kinds(user.tenant_id) if KINDS[kind].repeats != user.connection.strategy)
    return tuple(kind for kind in kinds if kind != EMAIL or _may_add_email(user))


def may_add_passkey(user: User) -> bool:
    """Tell whether the user can log in with a passkey: the tenant and the connection of the user must both allow passkeys."""
    return takes_passkeys(user.connection)


def purpose_of(kind: str) -> str:
    """Return the purpose of the challenge for a new key of this kind."""
    return ENROLL_PASSKEY if kind == PASSKEY else ENROLL_KEY


@own_act("Started to add a factor")
def begin_app(own: OwnAct, user: User, *, prover: Prover) -> None:
    """Start to add an authenticator app. Raises `ProofNeeded`, `SetupOver`, and `Conflict` for too many factors."""
    _require(own, user, TOTP)
    associate_app(prover, promises=False)


@own_act("Started to add a factor")
def begin_address(own: OwnAct, user: User, *, prover: Prover, kind: str, address: str = "") -> None:
    """Start to add a phone, or the email address of the profile. Send a code to the new factor.

    Raises `ProofNeeded`, `SetupOver` and the errors of `associate_address`.
    """
    _require(own, user, kind)
    associate_address(prover, kind, (user.email or "") if kind == EMAIL else address, promises=False)


def confirm(own: OwnAct, *, prover: Prover, kind: str, code: str) -> Added:
    """Confirm an authenticator app, a phone or an email address with its code.

    Raises `WrongProof`, `TooManyGuesses`, `ProofNeeded` and `SetupOver`.
    """
    return _taken(_confirmed(own, prover=prover, kind=kind, code=code))


def add_made_key(own: OwnAct, *, prover: Prover, kind: str, answer: str, party: RelyingParty) -> Added:
    """Add a key or a passkey that the browser has created. The challenge is valid for one answer, whether correct or not.

    Raises `WrongProof`, `AlreadyExists` if an account has the key, `Conflict` for too many keys, `ProofNeeded` and `SetupOver`.
    """
    return _taken(_key_added(own, prover=prover, kind=kind, answer=answer[:ANSWER_MOST_CHARACTERS], party=party))


# This function returns a refusal, and its caller raises the refusal after the commit: an exception in this function would roll back the
# counts of wrong guesses.
@own_act("Added a factor", before=lambda own: hold(own.user))
def _confirmed(own: OwnAct, user: User, *, prover: Prover, kind: str, code: str) -> Added | _Refused:
    _require(own, user, kind)
    enrollment = open_enrollment(prover, kind)
    if enrollment is None or enrollment.factor is None:
        raise SetupOver
    try:
        proven = confirm_app(prover, code) if kind == TOTP else confirm_sent(prover, enrollment.factor, code)
    except (WrongProof, TooManyGuesses) as refused:
        return refused
    return _added(own, proven.factor or enrollment.factor, proven.recovery_code)


@own_act("Added a factor")
def _key_added(own: OwnAct, user: User, *, prover: Prover, kind: str, answer: str, party: RelyingParty) -> Added | _Refused:
    _require(own, user, kind)
    challenge = open_key_challenge(prover, purpose=purpose_of(kind))
    if challenge is None:
        return WrongProof()
    try:
        made = ceremonies.verified_registration(answer, party, challenge=challenge, is_passkey=kind == PASSKEY)
    except CeremonyRefused:
        return WrongProof()
    try:
        added = add_key(tenant_id=user.tenant_id, user_id=user.user_id, kind=kind, made=made, relying_party=party.id)
    except (AlreadyExists, Conflict) as refused:
        return refused
    return _added(own, added.factor, added.recovery_code)


def _require(own: OwnAct, user: User, kind: str) -> None:
    if not is_proven(own.client, own.session):
        raise ProofNeeded
    if not may_add_passkey(user) if kind == PASSKEY else kind not in kinds_to_add(own.client, user):
        raise SetupOver


def _added(own: OwnAct, factor: EnrolledFactor, recovery_code: str) -> Added:
    """Store in the session that the user has the new second factor. Otherwise the next page would ask the user for this factor again."""
    shown = recovery_code if factor_settings(factor.tenant_id).has_recovery_codes else ""
    if factor.kind == PASSKEY or has_second_factor(own.session.methods):
        return Added(factor, shown)
    return Added(factor, shown, add_proof(own.session, methods_of(factor.kind)) or "")


def _may_add_email(user: User) -> bool:
    address = (user.email or "").casefold() if user.email_verified else ""
    return bool(address) and all(one.address.casefold() != address for one in factors_of(user, (EMAIL,)))


def _taken(verdict: Added | _Refused) -> Added:
    if isinstance(verdict, Exception):
        raise verdict
    return verdict
