"""Checks proofs of factors: codes that were sent, codes of apps, signatures of keys, recovery codes.

No other module accepts or refuses these proofs.

Every check locks the factors of the user, so guesses run one after another, even in different processes. A wrong guess is counted in the
transaction that refuses it, and reported to the caller after the commit.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from authapi.edge.throttling import Rate
from authapi.factors.kinds import RECOVERY_CODE, TOTP
from authapi.factors.limits import Whereabouts, count_guess, may_guess, take_message
from authapi.factors.messages import queue_code, require_sender
from authapi.factors.notices import RECOVERED, tell
from authapi.models import Client, FactorChallenge
from authapi.services import sign_in_log
from foundation.database.transactions import lock_name, unit_of_work
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.factors import ceremonies, user_factors
from identity.factors.ceremonies import CHALLENGE_BYTES, CeremonyRefused, Credential, RelyingParty
from identity.factors.user_factors import user_handle
from identity.models import EnrolledFactor, User
from identity.services.failures import NotFound

USE, ENROLL = "use", "enroll"
# Purposes of challenges for keys and passkeys that are added on the account page. Each page has its own purpose, so that the challenge of
# one page cannot be answered on another page.
ENROLL_KEY, ENROLL_PASSKEY = "enroll-key", "enroll-passkey"
CODE_DIGITS = 6
LIFE = timedelta(minutes=5)
# After a message to a factor, the user can request the next message only after this time, because mails take some seconds to arrive.
PAUSE = timedelta(seconds=30)
# Only this many codes that were sent to one factor are valid: the newest ones. So the code in a late message still works.
_COUNTING = 2
# Number of wrong guesses after which a code is invalid.
_MOST_FAILURES = 5
_LONGEST_CODE = 64
# Codes of the sign-in log (contract, logs): passed, failed, recovered, failed recovery, too many guesses.
_PASSED, _FAILED, _RECOVERED, _NOT_RECOVERED, _LIMIT = (
    "gd_auth_succeed",
    "gd_auth_failed",
    "gd_recovery_succeed",
    "gd_recovery_failed",
    "gd_otp_rate_limit_exceed",
)
_SENT = {EnrolledFactor.Kind.PHONE: "gd_send_sms", EnrolledFactor.Kind.EMAIL: "gd_send_email"}


class WrongProof(Exception):
    """This code is wrong or has expired, or the key was not accepted."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class TooManyGuesses(Exception):
    """There were too many wrong codes. Wait some minutes."""

    def __init__(self, rate: Rate) -> None:
        super().__init__(self.__doc__)
        self.rate = rate


@dataclass(frozen=True)
class Prover:
    """The user who has proven the first factor and now proves a second factor. `place` is the source of the request.

    The proof is valid only for the login, application transaction or session that `bound_to` identifies (see `bound_to_login` and the
    functions below it).
    """

    user: User
    place: Whereabouts
    bound_to: str = field(repr=False)
    client: Client | None = None
    connection: str = ""
    language: str = ""


@dataclass(frozen=True)
class Sent:
    """A message with a code was queued. An application identifies the message by `handle` (on the wire: `oob_code`)."""

    challenge: FactorChallenge
    handle: str = field(repr=False)


@dataclass(frozen=True)
class Proven:
    """An accepted proof: the kind, the factor if it has a row, and a new recovery code if the old one was used."""

    kind: str
    factor: EnrolledFactor | None = None
    recovery_code: str = field(default="", repr=False)


def bound_to_login(login_key: int) -> str:
    """Return the value that binds a challenge to one login on the hosted pages."""
    return f"login:{login_key}"


def bound_to_transaction(key: int) -> str:
    """Return the value that binds a challenge to one transaction of an application (`mfa_token`)."""
    return f"mfa:{key}"


def bound_to_session(session_id: str) -> str:
    """Return the value that binds a challenge to a session, for example on the account page."""
    return f"session:{session_id}"


@unit_of_work
def send_code(prover: Prover, factor: EnrolledFactor, *, purpose: str = USE) -> Sent:
    """Send a code to the phone or email address of a factor. Raises `CannotSend` if no sender is configured, and `TooManyMessages`."""
    user = prover.user
    require_sender(user.tenant_id, factor.kind)
    take_message(user, factor.address)
    handle, code = new_secret(), "".join(secrets.choice("0123456789") for _ in range(CODE_DIGITS))
    row = new_challenge(prover, factor=factor, purpose=purpose)
    row.handle_digest = digest_of(handle)
    row.code_digest = vault.digest(_said(row, code))
    row.save(force_insert=True)
    queue_code(user, factor, code, client=prover.client, language=prover.language, expires_at=row.expires_at)
    _note(prover, _SENT[EnrolledFactor.Kind(factor.kind)], is_success=True, factor=factor.kind)
    return Sent(row, handle)


def seconds_to_wait(prover: Prover, factor: EnrolledFactor) -> int:
    """Return the number of seconds until another code may be sent to a factor."""
    newest = _rows(prover).filter(factor=factor).exclude(code_digest="").order_by("-pk").values_list("created_at", flat=True).first()
    left = PAUSE - (timezone.now() - newest) if newest is not None else timedelta(0)
    return max(0, round(left.total_seconds()))


def has_sent(prover: Prover, factor: EnrolledFactor) -> bool:
    """Tell whether a valid code of this factor was sent for this login."""
    return counting(prover).filter(factor=factor).exclude(code_digest="").exists()


def sent_by_handle(prover: Prover, handle: str) -> FactorChallenge | None:
    """Return the challenge with this handle (`oob_code`). None for an unknown, used or expired challenge."""
    found = counting(prover).filter(handle_digest=digest_of(handle)).select_related("factor").first() if handle else None
    return found


def check_code(
    prover: Prover, factor: EnrolledFactor, code: str, *, purpose: str = USE, challenge: FactorChallenge | None = None
) -> Proven:
    """Check a code that was sent to a factor. If `challenge` is given, accept only the code of this challenge.

    Raises `WrongProof` and `TooManyGuesses`.
    """

    def judge() -> Proven | None:
        rows = counting(prover).filter(factor=factor, purpose=purpose).exclude(code_digest="")
        rows = rows if challenge is None else rows.filter(pk=challenge.pk)
        newest = list(rows.order_by("-pk")[:_COUNTING])
        found = [row for row in newest if vault.digest_matches(_said(row, code), row.code_digest)]
        if not newest:
            # The dummy comparison keeps the time independent of whether a code was sent.
            vault.digest_matches(code, "")
        if not found:
            FactorChallenge.objects.of(factor.tenant_id).filter(pk__in=[row.pk for row in newest]).update(failures=F("failures") + 1)
            return None
        counting(prover).filter(factor=factor).update(used_at=timezone.now())
        user_factors.note_use(factor)
        return Proven(factor.kind, factor)

    return judged(prover, code, judge)


def check_otp(prover: Prover, code: str) -> Proven:
    """Check a code of one of the user's authenticator apps. Raises `WrongProof` and `TooManyGuesses`."""

    def judge() -> Proven | None:
        factor = user_factors.take_totp(prover.user, code, moment=time.time())
        return Proven(TOTP, factor) if factor is not None else None

    return judged(prover, code, judge)


def check_recovery_code(prover: Prover, code: str) -> Proven:
    """Check the recovery code. The result contains its replacement. Raises `WrongProof` and `TooManyGuesses`."""

    def judge() -> Proven | None:
        renewed = user_factors.use_recovery_code(tenant_id=prover.user.tenant_id, user_id=prover.user.user_id, code=code)
        if renewed is None:
            return None
        tell(prover.user, RECOVERED)
        return Proven(RECOVERY_CODE, recovery_code=renewed)

    return judged(prover, code, judge, passed=_RECOVERED, failed=_NOT_RECOVERED)


@unit_of_work
def key_challenge(prover: Prover, *, purpose: str = USE, factor: EnrolledFactor | None = None) -> bytes:
    """Return a new challenge for a key of the user. The new challenge replaces the previous challenge.

    The caller builds the options for the browser.
    """
    _rows(prover).filter(code_digest="", purpose=purpose, used_at=None).delete()
    row = new_challenge(prover, factor=factor, purpose=purpose)
    row.challenge = challenge = secrets.token_bytes(CHALLENGE_BYTES)
    row.save(force_insert=True)
    return challenge


def open_key_challenge(prover: Prover, *, purpose: str = USE) -> bytes | None:
    """Return and use up the challenge for a key. A challenge is valid for one answer, whether correct or not.

    None if no challenge is open.
    """
    row = counting(prover).filter(code_digest="", purpose=purpose).order_by("-pk").first()
    # Only one of two concurrent answers finds the challenge open.
    if row is None or not _rows(prover).filter(pk=row.pk, used_at=None).update(used_at=timezone.now()):
        return None
    return bytes(row.challenge)


def keys_for(prover: Prover, kinds: tuple[str, ...], *, relying_party: str) -> list[Credential]:
    """Return the keys of the user for this domain."""
    return user_factors.credentials_of(prover.user, kinds, relying_party=relying_party)


def check_key(prover: Prover, answer: str | Mapping[str, Any], party: RelyingParty, *, kinds: tuple[str, ...]) -> Proven:
    """Check the signature of one of the user's keys of these kinds. Raises `WrongProof` and `TooManyGuesses`."""

    def judge() -> Proven | None:
        challenge = open_key_challenge(prover)
        if challenge is None:
            return None
        try:
            factor = _key_named(prover.user, ceremonies.credential_in(answer), kinds, party)
            use = ceremonies.verified_use(
                answer,
                party,
                challenge=challenge,
                public_key=bytes(factor.public_key or b""),
                sign_count=factor.sign_count,
                handle=user_handle(prover.user),
                is_passkey=False,
            )
        except (CeremonyRefused, NotFound):
            # An invalid answer is counted as a wrong guess.
            return None
        taken = user_factors.take_key(factor, sign_count=use.sign_count, is_backed_up=use.is_backed_up)
        return Proven(factor.kind, factor) if taken else None

    return judged(prover, "", judge)


def _key_named(user: User, credential: str, kinds: tuple[str, ...], party: RelyingParty) -> EnrolledFactor:
    rows = EnrolledFactor.objects.of(user.tenant_id).filter(user=user, is_confirmed=True, kind__in=kinds, relying_party=party.id)
    factor = rows.filter(credential_id=credential).first()
    if factor is None:
        raise NotFound("The user has no such key.")
    factor.user = user
    return factor


def judged(prover: Prover, code: str, judge: Callable[[], Proven | None], *, passed: str = _PASSED, failed: str = _FAILED) -> Proven:
    """Return the proof. If the guess is wrong, count it, commit, and raise `WrongProof`. Also raises `TooManyGuesses`."""
    verdict = _verdict(prover, code, judge, passed, failed)
    if isinstance(verdict, Rate):
        raise TooManyGuesses(verdict)
    if verdict is None:
        raise WrongProof
    return verdict


@unit_of_work
def _verdict(prover: Prover, code: str, judge: Callable[[], Proven | None], passed: str, failed: str) -> Proven | Rate | None:
    user = prover.user
    hold(user)
    spent = may_guess(user, prover.place)
    if spent is not None:
        _note(prover, _LIMIT, is_success=False)
        return spent
    proven = judge() if len(code) <= _LONGEST_CODE else None
    if proven is None:
        count_guess(user, prover.place)
        _note(prover, failed, is_success=False)
    else:
        _note(prover, passed, is_success=True, factor=proven.kind)
    return proven


def hold(user: User) -> None:
    """Lock the factors of a user until the transaction ends. A transaction that also locks the user's row must call this first."""
    lock_name(f"factors:{user.pk}")


def new_challenge(prover: Prover, *, factor: EnrolledFactor | None, purpose: str) -> FactorChallenge:
    """Return an unsaved challenge that is valid for `LIFE`."""
    user = prover.user
    expires_at = timezone.now() + LIFE
    return FactorChallenge(
        tenant_id=user.tenant_id, user=user, factor=factor, bound_to=prover.bound_to, purpose=purpose, expires_at=expires_at
    )


def _rows(prover: Prover) -> QuerySet[FactorChallenge]:
    return FactorChallenge.objects.of(prover.user.tenant_id).filter(user=prover.user, bound_to=prover.bound_to)


def counting(prover: Prover) -> QuerySet[FactorChallenge]:
    """Return the challenges that this user can still answer in this login, transaction or session."""
    return _rows(prover).filter(used_at=None, expires_at__gt=timezone.now(), failures__lt=_MOST_FAILURES)


def _said(row: FactorChallenge, code: str) -> str:
    """Return the text whose digest is stored for a code.

    The text includes columns that identify the row, so a digest copied to another row matches no code.
    """
    place = (row.tenant_id, str(row.user_id), str(row.factor_id), row.bound_to, row.purpose, row.expires_at.isoformat())
    return "\x00".join((*place, code))


def _note(prover: Prover, type: str, *, is_success: bool, factor: str = "") -> None:
    sign_in_log.note(
        tenant_id=prover.user.tenant_id,
        type=type,
        is_success=is_success,
        user=prover.user,
        client=prover.client,
        connection=prover.connection,
        ip=prover.place.ip,
        user_agent=prover.place.user_agent,
        details={"factor": factor} if factor else {},
    )
