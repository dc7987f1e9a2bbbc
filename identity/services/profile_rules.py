"""Which profile fields fit the connection of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from identity.connection_options import takes_username
from identity.models import Connection, User
from identity.passwords import password_problem
from identity.services.failures import Invalid

# Where somebody else vouches for the address.
_VERIFIED_ELSEWHERE = ("sms",)
_PERSONAL = ("email", "username", "name", "nickname", "given_name", "family_name")


class PasswordTooWeak(Invalid):
    """The policy of the connection does not take this password."""


def check_new_profile(connection: Connection, profile: Mapping[str, Any]) -> None:
    """Raise `Invalid` when a new user of `connection` may not have this profile; database users need a password."""
    if connection.is_database and not profile.get("password"):
        raise Invalid({"password": ["Missing required property"]})
    _check(connection, profile, profile)


def check_profile_change(user: User, changes: Mapping[str, Any]) -> None:
    """Raise `Invalid` when `user` may not be changed like this; only strategy and options of its connection decide."""
    connection = user.connection
    if "email_verified" in changes and (connection.is_enterprise or connection.strategy in _VERIFIED_ELSEWHERE):
        raise Invalid({"email_verified": [f"Cannot be changed for users of the strategy {connection.strategy}"]})
    _check(connection, changes, {**{field: getattr(user, field) for field in _PERSONAL}, **changes})


def _check(connection: Connection, changes: Mapping[str, Any], profile: Mapping[str, Any]) -> None:
    if changes.get("username") and not takes_username(connection.options):
        raise Invalid({"username": ["The connection does not take user names"]})
    if changes.get("password"):
        _check_password(connection, changes["password"], [profile.get(field) for field in _PERSONAL])


def _check_password(connection: Connection, password: str, personal: list[str | None]) -> None:
    if not connection.is_database:
        raise Invalid({"password": ["Only users of a database connection have a password"]})
    problem = password_problem(password, connection.options, personal)
    if problem:
        raise PasswordTooWeak({"password": [problem]})
