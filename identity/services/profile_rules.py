"""Rules for profile fields, by the connection of the user."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.contrib.auth.password_validation import CommonPasswordValidator

from identity.breaches.tenant_rule import is_refused
from identity.models import Connection, User
from identity.options.connection_options import required_attributes, takes_username
from identity.passwords import BREACHED, USED_BEFORE, PasswordProblem, password_problem
from identity.services.failures import Invalid
from identity.services.passwords import was_used_before

# Strategies whose own login verifies the phone number.
_VERIFIED_ELSEWHERE = ("sms",)
_PERSONAL = ("email", "username", "name", "nickname", "given_name", "family_name")


class PasswordTooWeak(Invalid):
    """The policy of the connection refuses this password; `problem` says why."""

    def __init__(self, problem: PasswordProblem) -> None:
        super().__init__({"password": [problem.text]})
        self.problem = problem


def check_new_profile(connection: Connection, profile: Mapping[str, Any], *, has_passkey: bool = False) -> None:
    """Raise `Invalid` if a new user of `connection` may not have this profile. A database user needs a password or a passkey."""
    if connection.is_database and not (has_passkey or profile.get("password")):
        raise Invalid({"password": ["Missing required property"]})
    _check(connection, profile, profile, None)


def check_profile_change(user: User, changes: Mapping[str, Any]) -> None:
    """Raise `Invalid` if `user` may not be changed like this. The decision depends only on strategy and options of the connection."""
    connection = user.connection
    if "email_verified" in changes and (connection.is_enterprise or connection.strategy in _VERIFIED_ELSEWHERE):
        raise Invalid({"email_verified": [f"Cannot be changed for users of the strategy {connection.strategy}"]})
    _check(connection, changes, {**personal_data(user), **changes}, user)


def personal_data(user: User) -> dict[str, str | None]:
    """Return the names and email addresses of a user, which the connection can forbid in passwords."""
    return {field: getattr(user, field) for field in _PERSONAL}


def _check(connection: Connection, changes: Mapping[str, Any], profile: Mapping[str, Any], user: User | None) -> None:
    missing = _missing_attributes(connection, changes, is_new=user is None)
    if missing:
        raise Invalid({name: ["Missing required property"] for name in missing})
    if changes.get("username") and not takes_username(connection.options):
        raise Invalid({"username": ["The connection does not support usernames"]})
    if changes.get("password"):
        check_password(connection, changes["password"], profile, user=user)


def _missing_attributes(connection: Connection, changes: Mapping[str, Any], *, is_new: bool) -> list[str]:
    """Return the required attributes that a new user lacks or that a change removes.

    If an existing user lacks a required attribute, and the change does not contain this attribute, the attribute is not returned.
    """
    required = required_attributes(connection.options) if connection.is_database else ()
    return [name for name in required if (is_new or name in changes) and not changes.get(name)]


def check_password(connection: Connection, password: str, personal: Mapping[str, Any], *, user: User | None = None) -> None:
    """Raise `PasswordTooWeak` if the connection refuses this new password. Every function that sets a password calls this check.

    `personal` is the profile; `user` is the existing user, if any. Imported hashes are not checked.
    """
    if not connection.is_database:
        raise Invalid({"password": ["Only users of a database connection have a password"]})
    problem = password_problem(password, connection.options, [personal.get(field) for field in _PERSONAL], common=_common_passwords())
    if problem is None and user is not None and was_used_before(user, password):
        problem = USED_BEFORE
    if problem is None and is_refused(connection.tenant_id, password, is_new=user is None):
        problem = BREACHED
    if problem is not None:
        raise PasswordTooWeak(problem)


@lru_cache(maxsize=1)
def _common_passwords() -> frozenset[str]:
    return frozenset(CommonPasswordValidator().passwords)
