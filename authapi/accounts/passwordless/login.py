"""Login with a code or a link: locks the email address or phone number, checks the code or link, uses it up, and writes the sign-in log.

A client without the code or link cannot learn from the text, status or time of a response whether a user exists: the user is looked up
only after the code or link was checked as correct.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from django.utils import timezone

from authapi.accounts.attempts import LoginRefused, Refusal
from authapi.accounts.event_context import context_of
from authapi.accounts.password_login import note_login_without_signals
from authapi.accounts.passwordless.addresses import Address, Channel
from authapi.accounts.passwordless.codes import Scope, hold, matching_code, use_up
from authapi.accounts.passwordless.limits import Place, count_guess, may_guess
from authapi.accounts.passwordless.options import read_options
from authapi.accounts.passwordless.people import mark_proven, new_user_at, user_at
from authapi.accounts.suspicion import LOGIN, SIGN_UP, count_attempt, is_suspicious, rate_of_suspicious
from authapi.edge.throttling import Rate
from authapi.models import Client, PasswordlessCode
from authapi.services import sign_in_log
from foundation.change_context import change_context
from foundation.database.transactions import unit_of_work
from identity.hosts import HostMatch
from identity.models import Connection, User
from identity.services.failures import AlreadyExists, BeingDeleted, Invalid

# The methods by which the user has authenticated (RFC 8176, 2). A second factor must use a different method.
METHODS = {Channel.EMAIL: ("otp", "email"), Channel.SMS: ("otp", "sms")}
_SUCCESS, _FAILURE, _SIGNED_UP = "s", "f", "ss"
_DESCRIPTIONS = {
    Refusal.WRONG_CREDENTIALS: "Wrong or expired code.",
    Refusal.USER_BLOCKED: "The user is blocked by an administrator.",
    Refusal.TOO_MANY_ATTEMPTS: "Too many wrong codes for the email address or phone number.",
    Refusal.SUSPICIOUS_ADDRESS: "Too many failed logins at many accounts from this IP address.",
}
_TYPES = {Refusal.TOO_MANY_ATTEMPTS: "limit_wc", Refusal.SUSPICIOUS_ADDRESS: "limit_mu"}


@dataclass(frozen=True)
class CodeAttempt:
    """An attempt to log in with a code. `client` is None if a request names no application and only checks the code, without using it up.

    `bound_to` names the login or the `auth_session` that the code belongs to (`codes.bound_to_login`, `codes.bound_to_session`). It is
    empty for a code that an application requested without a session.
    """

    host: HostMatch
    client: Client | None
    connection: Connection
    address: Address
    code: str = field(repr=False)
    place: Place
    user_agent: str = ""
    bound_to: str = ""

    @property
    def scope(self) -> Scope:
        return Scope(self.connection, self.address, self.client, self.bound_to)


@dataclass(frozen=True)
class _Judged:
    """The result of an attempt. A refusal is returned, not raised: an exception would roll back the counts."""

    user: User | None = None
    refusal: Refusal | None = None
    rate: Rate | None = None


def log_in_with_code(attempt: CodeAttempt) -> User:
    """Return the user if the code is correct, use the code up, and record the login. Raises `LoginRefused`.

    1. Refuse an IP address with failures at many accounts. 2. Lock the email address or phone number. 3. Refuse after too many wrong
    guesses. 4. Compare the code. If it is wrong, count the guess. 5. If it is correct, find the user, and refuse a blocked user. If there
    is no user, create the account if the connection allows it.
    """
    return _concluded(attempt, uses_up=True)


def check_code(attempt: CodeAttempt) -> None:
    """Check a code without using it up. Raises `LoginRefused` for a wrong code, which is counted as a wrong guess."""
    _concluded(attempt, uses_up=False)


def log_in_with_link(row: PasswordlessCode, address: Address, *, host: HostMatch, place: Place, user_agent: str) -> User:
    """Return the user for a link whose use was confirmed, and use the link up.

    Raises `LoginRefused`, for example for a link that was just used.
    """
    attempt = CodeAttempt(host, row.client, row.connection, address, "", place, user_agent, row.bound_to)
    judged = _judge_link(attempt, row.pk)
    return _user_of(judged)


def _concluded(attempt: CodeAttempt, *, uses_up: bool) -> User:
    tenant_id = attempt.host.tenant_id
    if is_suspicious(tenant_id, attempt.place.ip, LOGIN):
        _note(attempt, None, Refusal.SUSPICIOUS_ADDRESS)
        raise LoginRefused(Refusal.SUSPICIOUS_ADDRESS, rate_of_suspicious(tenant_id, LOGIN))
    judged = _judge(attempt, uses_up=uses_up)
    if judged.refusal is Refusal.WRONG_CREDENTIALS:
        count_attempt(tenant_id, attempt.place.ip, LOGIN)
    return _user_of(judged) if uses_up or judged.refusal is not None else User()


def _user_of(judged: _Judged) -> User:
    if judged.user is None or judged.refusal is not None:
        raise LoginRefused(judged.refusal or Refusal.WRONG_CREDENTIALS, judged.rate)
    return judged.user


@unit_of_work
def _judge(attempt: CodeAttempt, *, uses_up: bool) -> _Judged:
    tenant_id, is_limited = attempt.host.tenant_id, read_options(attempt.connection.options).limits_guesses
    hold(attempt.scope)
    rate = may_guess(tenant_id, attempt.address, attempt.place) if is_limited else None
    if rate is not None:
        return _refused(attempt, None, Refusal.TOO_MANY_ATTEMPTS, rate)
    row = matching_code(attempt.scope, attempt.code)
    if row is None:
        if is_limited:
            count_guess(tenant_id, attempt.address, attempt.place)
        return _refused(attempt, None, Refusal.WRONG_CREDENTIALS)
    return _proven(attempt, row) if uses_up else _Judged()


@unit_of_work
def _judge_link(attempt: CodeAttempt, row_key: int) -> _Judged:
    hold(attempt.scope)
    waiting = PasswordlessCode.objects.of(attempt.host.tenant_id).select_related("client", "connection")
    row = waiting.filter(pk=row_key, used_at=None, expires_at__gt=timezone.now()).first()
    return _refused(attempt, None, Refusal.WRONG_CREDENTIALS) if row is None else _proven(attempt, row)


def _proven(attempt: CodeAttempt, row: PasswordlessCode) -> _Judged:
    user = user_at(attempt.connection, attempt.address)
    if user is not None and user.blocked:
        use_up(row)
        return _refused(attempt, user, Refusal.USER_BLOCKED)
    if user is None:
        if not count_attempt(attempt.host.tenant_id, attempt.place.ip, SIGN_UP):
            rate = rate_of_suspicious(attempt.host.tenant_id, SIGN_UP)
            return _refused(attempt, None, Refusal.SUSPICIOUS_ADDRESS, rate)
        if not (row.takes_sign_up and read_options(attempt.connection.options).takes_sign_ups):
            use_up(row)
            return _refused(attempt, None, Refusal.WRONG_CREDENTIALS)
    use_up(row)
    agent = attempt.user_agent
    with change_context(context_of(attempt.host, attempt.client, ip=attempt.place.ip, user_agent=agent)):
        user = _made(attempt) if user is None else mark_proven(user, attempt.connection, attempt.address)
    note_login_without_signals(user, attempt.place.ip)
    _note(attempt, user, None)
    return _Judged(user)


def _made(attempt: CodeAttempt) -> User:
    """Create the account at a first login. Raises `LoginRefused`, which rolls back the transaction, so that the code stays valid."""
    try:
        user = new_user_at(attempt.connection, attempt.address)
    except (AlreadyExists, BeingDeleted, Invalid) as error:
        _give_up(error)
    _note(attempt, user, None, type=_SIGNED_UP)
    return user


def _give_up(error: Exception) -> NoReturn:
    raise LoginRefused(Refusal.WRONG_CREDENTIALS) from error


def _refused(attempt: CodeAttempt, user: User | None, refusal: Refusal, rate: Rate | None = None) -> _Judged:
    _note(attempt, user, refusal)
    return _Judged(user, refusal, rate)


def _note(attempt: CodeAttempt, user: User | None, refusal: Refusal | None, *, type: str = _SUCCESS) -> None:
    sign_in_log.note(
        tenant_id=attempt.host.tenant_id,
        type=type if refusal is None else _TYPES.get(refusal, _FAILURE),
        is_success=refusal is None,
        description=_DESCRIPTIONS[refusal] if refusal is not None else "",
        user=user,
        user_name=attempt.address.value,
        client=attempt.client,
        connection=attempt.connection.name,
        ip=attempt.place.ip,
        user_agent=attempt.user_agent,
    )
