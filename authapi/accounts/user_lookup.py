"""Finds the user of a login by email address, username or phone number, in one query."""

from __future__ import annotations

import re

from django.db.models import Q, Value
from django.db.models.functions import Lower

from foundation.json_values import storable, text_problem
from identity.models import Connection, User

LONGEST = 254
_PHONE_PUNCTUATION = re.compile(r"[\s().-]")


def named_user(connection: Connection, identifier: str) -> User | None:
    """Return the user of the connection with this email address, username or phone number, ignoring case.

    Return None if there is no such user. If several users match, an email address takes precedence over a username, and a username over a
    phone number.
    """
    wanted = identifier.strip()
    if not wanted or len(wanted) > LONGEST or text_problem(wanted):
        return None
    # Each condition has its own unique index: (connection, lower(email)), (connection, lower(username)), (connection, phone_number).
    fits = Q(email_key=Lower(Value(wanted))) | Q(username_key=Lower(Value(wanted))) | Q(phone_number=_number(wanted))
    users = User.objects.of(connection.tenant_id).alias(email_key=Lower("email"), username_key=Lower("username"))
    found = list(users.filter(fits, connection=connection).select_related("connection", "password_credential"))
    return min(found, key=lambda user: _rank(user, wanted), default=None)


def failure_key(user: User | None, identifier: str) -> str:
    """Return the name under which failed logins of the user, or of an unknown identifier, are counted.

    All spellings of an identifier share a count.
    """
    wanted = identifier.strip()
    called = [user.email, user.username, user.phone_number] if user else []
    matched = next((name for name in called if name and name.lower() == wanted.lower()), None)
    if matched is None and user is not None:
        matched = user.phone_number if user.phone_number == _number(wanted) else user.email or user.username
    return storable(matched or wanted).lower()[:LONGEST]


def names_of(user: User) -> list[str]:
    """Return every name under which failed logins of the user may be counted."""
    return [name.lower() for name in (user.email, user.username, user.phone_number) if name]


def _number(wanted: str) -> str:
    return _PHONE_PUNCTUATION.sub("", wanted) if wanted.startswith("+") else wanted


def _rank(user: User, wanted: str) -> int:
    lowered = wanted.lower()
    if user.phone_number == _number(wanted):
        return 2
    return 1 if (user.username or "").lower() == lowered else 0
