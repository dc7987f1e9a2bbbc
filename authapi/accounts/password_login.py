"""Login with a password: limits the rate before any hashing, serializes the attempts at one account, and writes the sign-in log.

A client without the password cannot learn whether a user exists. For known and unknown identifiers, the text, the status and the time of
the response are the same, and so are the failure counts, the blocks and the refusals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from django.db import models
from django.utils import timezone

from authapi.accounts.account_mails import start_unblock_mail
from authapi.accounts.attempts import Attempt, LoginRefused, Refusal
from authapi.accounts.brute_force import Count, counted_address, held_count
from authapi.accounts.decoy_hashes import stand_in
from authapi.accounts.leaked_passwords import BLOCK, IN_WORDS, LEAKED_AT_LOGIN, TELL_USER, leak_rules, tell_admins
from authapi.accounts.suspicion import LOGIN, count_attempt, is_suspicious, rate_of_suspicious
from authapi.accounts.user_lookup import failure_key, named_user
from authapi.edge.addresses import stored_address
from authapi.edge.rate_figures import LOGINS
from authapi.edge.throttling import Rate
from authapi.services import sign_in_log
from authapi.services.security_mail_jobs import start_leak_mail
from foundation.database.transactions import unit_of_work
from foundation.secrets.hashing import verified
from identity.breaches.current_list import is_in_breach
from identity.models import User
from identity.services.passwords import check_credential, note_leak

# Codes and texts of the sign-in log, by refusal.
_SUCCESS = "s"
_LINES: dict[Refusal, tuple[str, str]] = {
    Refusal.USER_BLOCKED: ("f", "The user is blocked by an administrator."),
    Refusal.TOO_MANY_ATTEMPTS: ("limit_wc", "The account is blocked after too many failed logins."),
    Refusal.TOO_MANY_LOGINS: ("limit_sul", "Too many logins to this account from one IP address."),
    Refusal.SUSPICIOUS_ADDRESS: ("limit_mu", "Too many failed logins at many accounts from this IP address."),
    Refusal.PASSWORD_LEAKED: (LEAKED_AT_LOGIN, IN_WORDS),
}
_WRONG_PASSWORD = ("fp", "Wrong password.")
_UNKNOWN_USER = ("fu", "Unknown user.")


@dataclass(frozen=True)
class _Judged:
    """The result of an attempt. A refusal is returned, not raised: an exception would roll back the counts."""

    user: User | None
    refusal: Refusal | None = None


def log_in(attempt: Attempt) -> User:
    """Return the user if the password is correct, and record the login in the row of the user. Raises `LoginRefused`.

    1. Refuse an IP address that has made too many attempts at one account, or in total at many accounts. 2. Find the user. 3. Lock the
    failure count.
    4. Refuse an account that is blocked after too many failures. 5. Check the password. 6. If it is wrong, count a failure, which may block
    the account. 7. Refuse a user whom an administrator has blocked. 8. Look up the correct password in the list of breached passwords, and
    refuse it if the tenant blocks such logins. 9. Reset the failure count.
    """
    if not LOGINS.takes(attempt.tenant_id, attempt.connection.pk, failure_key(None, attempt.identifier), counted_address(attempt.ip)):
        _refuse(attempt, Refusal.TOO_MANY_LOGINS, Rate.of_empty(LOGINS))
    if is_suspicious(attempt.tenant_id, attempt.ip, LOGIN):
        _refuse(attempt, Refusal.SUSPICIOUS_ADDRESS, rate_of_suspicious(attempt.tenant_id, LOGIN))
    judged = _judge(attempt)
    if judged.refusal is Refusal.WRONG_CREDENTIALS:
        count_attempt(attempt.tenant_id, attempt.ip, LOGIN)
    if judged.refusal is not None or judged.user is None:
        raise LoginRefused(judged.refusal or Refusal.WRONG_CREDENTIALS)
    return judged.user


@unit_of_work
def _judge(attempt: Attempt) -> _Judged:
    user = named_user(attempt.connection, attempt.identifier)
    count = held_count(attempt.connection, failure_key(user, attempt.identifier), attempt.ip)
    if count is not None and count.is_blocked:
        return _judged(attempt, user, Refusal.TOO_MANY_ATTEMPTS)
    if not _fits(attempt, user):
        if count is not None:
            _count_failure(attempt, count)
        return _judged(attempt, user, Refusal.WRONG_CREDENTIALS)
    if user is None or user.blocked:
        return _judged(attempt, user, Refusal.USER_BLOCKED)
    if _is_refused_as_leaked(attempt, user):
        return _judged(attempt, user, Refusal.PASSWORD_LEAKED)
    note_login_without_signals(user, attempt.ip)
    if count is not None:
        count.forget()
    return _judged(attempt, user, None)


def _fits(attempt: Attempt, user: User | None) -> bool:
    credential = getattr(user, "password_credential", None)
    if credential is None:
        verified(attempt.password, stand_in(attempt.connection.pk, failure_key(user, attempt.identifier)))
        return False
    return check_credential(credential, attempt.password)


def _is_refused_as_leaked(attempt: Attempt, user: User) -> bool:
    """Tell whether a correct password is refused because it was found in a breach. Notify the user and the administrators, as the tenant
    has configured.

    If the password is refused, the caller keeps the failure count: an attacker with a leaked password must not reset the count.
    """
    rules = leak_rules(attempt.tenant_id)
    if not rules.is_enabled or not is_in_breach(attempt.password):
        return False
    if TELL_USER in rules.at_login and user.email and note_leak(user.password_credential):
        start_leak_mail(user=user, client=attempt.client, ip=attempt.ip, address=attempt.address)
    tell_admins(attempt.tenant_id, rules, rules.at_login)
    if BLOCK in rules.at_login:
        return True
    _write(attempt, user, LEAKED_AT_LOGIN, IN_WORDS, is_success=True)
    return False


def _count_failure(attempt: Attempt, count: Count) -> None:
    if count.add_failure() and count.rules.notifies:
        # The job also starts for unknown identifiers. Only the worker looks up the user, so the time of the response does not reveal
        # whether the user exists.
        start_unblock_mail(
            connection=attempt.connection,
            identifier=count.identifier,
            client=attempt.client,
            ip=attempt.ip,
            address=attempt.address,
        )


def note_login_without_signals(user: User, ip: str) -> None:
    """Store the time and IP address of a login, and count it. The update bypasses signals, so that no event is recorded and `updated_at`
    does not change."""
    user.last_login, user.last_ip = timezone.now(), stored_address(ip)
    rows: models.QuerySet[User] = models.QuerySet(User).filter(pk=user.pk)
    rows.update(last_login=user.last_login, last_ip=user.last_ip, logins_count=models.F("logins_count") + 1)
    user.logins_count += 1


def _judged(attempt: Attempt, user: User | None, refusal: Refusal | None) -> _Judged:
    _note(attempt, user, refusal)
    return _Judged(user, refusal)


def _refuse(attempt: Attempt, refusal: Refusal, rate: Rate) -> NoReturn:
    _note(attempt, None, refusal)
    raise LoginRefused(refusal, rate)


def _note(attempt: Attempt, user: User | None, refusal: Refusal | None) -> None:
    if refusal is None:
        code, description = _SUCCESS, ""
    elif refusal is Refusal.WRONG_CREDENTIALS:
        code, description = _WRONG_PASSWORD if user else _UNKNOWN_USER
    else:
        code, description = _LINES[refusal]
    _write(attempt, user, code, description, is_success=refusal is None)


def _write(attempt: Attempt, user: User | None, code: str, description: str, *, is_success: bool) -> None:
    sign_in_log.note(
        tenant_id=attempt.tenant_id,
        type=code,
        is_success=is_success,
        description=description,
        user=user,
        user_name=attempt.identifier,
        client=attempt.client,
        connection=attempt.connection.name,
        ip=attempt.ip,
        user_agent=attempt.user_agent,
    )
