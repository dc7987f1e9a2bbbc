"""Finds the existing users that the rows of an import match."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.functions import Lower

from foundation.database.transactions import lock_rows
from identity.models import Connection, LinkedIdentity, User
from identity.services.users import user_id_of

_MATCHED_BY = ("user_id", "email", "username", "phone_number")

Key = tuple[str, str]


def keys_of(connection: Connection, row: dict[str, Any]) -> list[Key]:
    """Return the keys by which a row matches an existing user, strongest first."""
    found = {**row, "user_id": user_id_of(connection, row["user_id"]) if row.get("user_id") else None}
    return [(name, found[name] if name == "user_id" else found[name].lower()) for name in _MATCHED_BY if found.get(name)]


def matches_of(connection: Connection, rows: list[dict[str, Any]]) -> dict[Key, User]:
    """Return the users that rows may match, by key: users of the connection, and users of other connections if a row has their id.
    Locks the rows of these users in the database."""
    wanted: dict[str, list[str]] = {name: [] for name in _MATCHED_BY}
    for row in rows:
        for name, value in keys_of(connection, row):
            wanted[name].append(value)
    users = User.objects.of(connection.tenant_id).annotate(email_key=Lower("email"), username_key=Lower("username"))
    by_address = models.Q(email_key__in=wanted["email"]) | models.Q(username_key__in=wanted["username"])
    of_connection = models.Q(connection=connection) & (by_address | models.Q(phone_number__in=wanted["phone_number"]))
    found = list(users.filter(models.Q(user_id__in=wanted["user_id"]) | of_connection).values_list("pk", flat=True))
    lock_rows(User, found)
    matches: dict[Key, User] = {}
    for user in User.objects.of(connection.tenant_id).select_related("connection").filter(pk__in=found):
        for name in _MATCHED_BY:
            shown: str | None = getattr(user, name)
            if shown:
                matches[(name, shown if name == "user_id" else shown.lower())] = user
    return matches


def linked_rows(connection: Connection, rows: list[dict[str, Any]]) -> set[str]:
    """Return those ids in `rows` that are ids of linked identities. No user can have these ids."""
    ids = {row["user_id"]: user_id_of(connection, row["user_id"]).partition("|")[2] for row in rows if row.get("user_id")}
    if not ids:
        return set()
    linked = LinkedIdentity.objects.of(connection.tenant_id).filter(provider=connection.strategy, identifier__in=ids.values())
    taken = set(linked.values_list("identifier", flat=True))
    return {sent for sent, identifier in ids.items() if identifier in taken}
