"""Login with only a passkey: finds the user by the passkey, locks the row of the user, checks the answer, and writes the sign-in log.

The passkey identifies the user, so the user types no name. A client without the passkey learns nothing about accounts. A wrong answer gets
the same refusal as an unknown passkey. An account is looked up only after its passkey was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from authapi.accounts.attempts import LoginRefused, Refusal
from authapi.accounts.password_login import note_login_without_signals
from authapi.accounts.suspicion import LOGIN, count_attempt, is_suspicious, rate_of_suspicious
from authapi.factors.passkey_options import takes_passkeys
from authapi.models import Client
from authapi.services import sign_in_log
from foundation.database.transactions import unit_of_work
from identity.factors import ceremonies
from identity.factors.ceremonies import CeremonyRefused, RelyingParty
from identity.factors.user_factors import take_key, user_handle
from identity.models import Connection, EnrolledFactor, User
from identity.services.failures import NotFound
from identity.services.users import locked_user

_SUCCESS, _FAILURE, _LIMIT = "s", "f", "limit_mu"
_UNKNOWN = "The passkey is unknown or belongs to another domain."
_CLOSED = "The connection of the user does not allow passkeys."
_NOT_INVITED = "The invitation is for another email address."
_WRONG = "The passkey was not accepted: its answer is wrong, too old, or for another login."
_BLOCKED = "The user is blocked by an administrator."
_SUSPICIOUS = "Too many failed logins at many accounts from this IP address."


@dataclass(frozen=True)
class PasskeyAttempt:
    """An answer of an authenticator. `challenge` is None if the challenge was already used or has expired.

    `connections` are the connections through which the user may log in. `email` is the invited email address, or empty without an
    invitation. If `email` is set, only the user with this email address may log in.
    """

    tenant_id: str
    client: Client
    connections: tuple[Connection, ...]
    party: RelyingParty
    answer: str | Mapping[str, Any] = field(repr=False)
    challenge: bytes | None = field(repr=False)
    ip: str = ""
    user_agent: str = ""
    email: str = ""


@dataclass(frozen=True)
class KnownPerson:
    """The user who has logged in, and the connection of the login."""

    user: User
    connection: Connection


@dataclass(frozen=True)
class _Judged:
    """The result of an attempt. A refusal is returned, not raised: an exception would roll back the lines of the sign-in log."""

    person: KnownPerson | None = None
    refusal: Refusal | None = None


def log_in_with_passkey(attempt: PasskeyAttempt) -> KnownPerson:
    """Return the user whose passkey signed the challenge. Updates the signature counter and the user's last login. Raises `LoginRefused`.

    1. Refuse an IP address with failed logins at many accounts. 2. Find the passkey. 3. Lock the row of its user. 4. Check the answer,
    which must state that the authenticator has verified the user. 5. Refuse a user whose connection does not allow passkeys, who is not the
    invited user, or who is blocked.
    """
    if is_suspicious(attempt.tenant_id, attempt.ip, LOGIN):
        _note(attempt, None, _SUSPICIOUS, type=_LIMIT)
        raise LoginRefused(Refusal.SUSPICIOUS_ADDRESS, rate_of_suspicious(attempt.tenant_id, LOGIN))
    judged = _judge(attempt)
    if judged.refusal is Refusal.WRONG_CREDENTIALS:
        count_attempt(attempt.tenant_id, attempt.ip, LOGIN)
    if judged.person is None:
        raise LoginRefused(judged.refusal or Refusal.WRONG_CREDENTIALS)
    return judged.person


def note_passkey_login(attempt: PasskeyAttempt, factor: EnrolledFactor, user: User) -> None:
    """Record a login in the row of the user and in the sign-in log."""
    note_login_without_signals(user, attempt.ip)
    _note(attempt, user, factor=factor)


@unit_of_work
def _judge(attempt: PasskeyAttempt) -> _Judged:
    factor = _held_passkey(attempt)
    if factor is None:
        return _refused(attempt, None, _UNKNOWN)
    user = factor.user
    if attempt.challenge is None or not _has_signed(attempt, factor, attempt.challenge):
        return _refused(attempt, user, _WRONG)
    connection = next((one for one in attempt.connections if one.pk == user.connection_id and takes_passkeys(one)), None)
    if connection is None:
        return _refused(attempt, user, _CLOSED)
    if attempt.email and (user.email or "").lower() != attempt.email.lower():
        return _refused(attempt, user, _NOT_INVITED)
    if user.blocked:
        return _refused(attempt, user, _BLOCKED, Refusal.USER_BLOCKED)
    note_passkey_login(attempt, factor, user)
    return _Judged(KnownPerson(user, connection))


def _held_passkey(attempt: PasskeyAttempt) -> EnrolledFactor | None:
    """Return the passkey whose id is in the answer, and lock the row of its user. None if there is no such passkey."""
    try:
        named = ceremonies.credential_in(attempt.answer)
    except CeremonyRefused:
        return None
    rows = EnrolledFactor.objects.of(attempt.tenant_id).filter(
        credential_id=named, kind=EnrolledFactor.Kind.PASSKEY, is_confirmed=True, relying_party=attempt.party.id
    )
    owner = rows.values_list("user__user_id", flat=True).first()
    try:
        user = locked_user(tenant_id=attempt.tenant_id, user_id=owner) if owner else None
    except NotFound:
        return None
    factor = rows.filter(user=user).first() if user is not None else None
    if factor is not None and user is not None:
        factor.user = user
    return factor


def _has_signed(attempt: PasskeyAttempt, factor: EnrolledFactor, challenge: bytes) -> bool:
    try:
        # WebAuthn, section 7.2, step 6: if the user typed no name, the answer must contain the user handle.
        if not ceremonies.parsed(attempt.answer)["response"].get("userHandle"):
            return False
        use = ceremonies.verified_use(
            attempt.answer,
            attempt.party,
            challenge=challenge,
            public_key=bytes(factor.public_key or b""),
            sign_count=factor.sign_count,
            handle=user_handle(factor.user),
        )
    except CeremonyRefused:
        return False
    return take_key(factor, sign_count=use.sign_count, is_backed_up=use.is_backed_up)


def _refused(attempt: PasskeyAttempt, user: User | None, why: str, refusal: Refusal = Refusal.WRONG_CREDENTIALS) -> _Judged:
    _note(attempt, user, why)
    return _Judged(refusal=refusal)


def _note(
    attempt: PasskeyAttempt, user: User | None, description: str = "", *, factor: EnrolledFactor | None = None, type: str = _FAILURE
) -> None:
    sign_in_log.note(
        tenant_id=attempt.tenant_id,
        type=_SUCCESS if factor is not None else type,
        is_success=factor is not None,
        description=description,
        user=user,
        client=attempt.client,
        connection=_name_of(user, attempt.connections),
        ip=attempt.ip,
        user_agent=attempt.user_agent,
        details={"passkey": factor.device, "name": factor.name} if factor is not None else {"factor": EnrolledFactor.Kind.PASSKEY.value},
    )


def _name_of(user: User | None, connections: Iterable[Connection]) -> str:
    return next((one.name for one in connections if user is not None and one.pk == user.connection_id), "")
