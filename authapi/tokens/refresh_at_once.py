"""Fast path: reads and exchanges a refresh token with two statements on the event loop. The second statement is the whole transaction.

The plain path is `authapi.tokens.refresh_tokens`, which runs in a thread. It locks the row, reads it, and writes the row and its successor,
with five round trips to the database server. The fast path reads the row without a lock. Each exchange changes `updated` of a token, and
each revocation sets `revoked`, even if a block or a logout causes the revocation. The fast path writes only if `revoked` is empty, and if
`updated` has not changed since it was read. A token that has changed in the meantime takes the plain path. Every request other than an
ordinary exchange of a valid token takes the plain path, too. One statement writes the rotation and the successor, so either both are
stored, or neither. The measurements are in docs/performance.md.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connection, models
from django.utils import timezone
from psycopg import sql

from authapi.models import RefreshToken
from authapi.tokens.minting import Issue
from authapi.tokens.profile_claims import SHOWN
from authapi.tokens.refresh_policy import RefreshPolicy
from authapi.tokens.refresh_tokens import INHERITED, ROTATED, USED, Sender, note_use, rotated, rows_of_token
from foundation.database.loop_queries import LoopSelect, LoopStatement
from foundation.memory.ttl_cache import Cold
from foundation.secrets.random_secrets import digest_of

# The columns that an exchange reads, including columns of related rows. Making instances of whole rows would take several times as long.
_READ = (
    "tenant", "application", "user", "session", "organization", "wire_id", "lineage", "scope", "audience", "auth_time", "methods",
    "confirmation", "asked", "created", "updated", "revoked", "is_rotating", "is_rotated", "expires_at", "idle_expires_at",
    "sealed_successor", "sealed_until", "session__idle_expires_at", "user__connection", "user__user_id", "user__blocked",
    *(f"user__{name}" for name in SHOWN), "user__connection__name",
)  # fmt: skip
# The columns with new values in the successor. All other columns are copied from the old row or have the default of a new row.
_OWN = (
    "token_checksum", "wire_id", "created", "updated", "idle_expires_at", "last_ip", "last_user_agent", "issued_jti", "issued_until",
)  # fmt: skip
_NOTED = (*USED, "last_exchanged_at")


def _read(tenant_id: str, checksum: str) -> models.QuerySet[RefreshToken]:
    # Tokens with an organization are exchanged on the plain path, which reads the organization.
    return rows_of_token(tenant_id, checksum).select_related(None).select_related("user__connection", "session").only(*_READ)


_ROW = LoopSelect("refresh_token", _read, "tenant_id", "checksum")


async def read_refresh_token(*, tenant_id: str, token: str) -> RefreshToken:
    """Return the row of a token that was neither revoked nor rotated, with its related rows. Raises `Cold` for any other token."""
    row = await _ROW.first(tenant_id=tenant_id, checksum=digest_of(token))
    if row is None or row.revoked is not None or row.is_rotated:
        raise Cold
    return row


async def renew_at_once(row: RefreshToken, *, access: Issue, until: datetime, policy: RefreshPolicy, sender: Sender) -> str | None:
    """Do what `renew` does, for a row that was read without a lock.

    Raises `Cold` if the row has changed in the meantime; nothing is stored then. Raises `Unanswered` if it is unknown whether the exchange
    was committed.
    """
    now, read = timezone.now(), row.updated
    known = (str(row.pk), row.tenant_id, read)
    if not policy.is_rotating:
        note_use(row, access=access, until=until, policy=policy, now=now, sender=sender)
        row.updated = row.last_exchanged_at = now
        is_stored = await _NOTE.changes(*known, *_values(row, _NOTED))
        text = None
    else:
        text = rotated(row, policy, now=now)
        row.updated = now
        successor = RefreshToken(token_checksum=digest_of(text), created=now, updated=now)
        note_use(successor, access=access, until=until, policy=policy, now=now, sender=sender)
        is_stored = await _ROTATE.changes(*known, *_values(row, (*ROTATED, "updated")), *_values(successor, _OWN))
    if not is_stored:
        raise Cold
    return text


def _values(row: RefreshToken, names: tuple[str, ...]) -> list[Any]:
    return [getattr(row, name) for name in names]


def _noted() -> str:
    changed = _assigned(_NOTED, after=3)
    return f"UPDATE {_table()} SET {changed} {_UNCHANGED} RETURNING id"  # noqa: S608  (names of the model)


def _rotated() -> str:
    """Return the statement that replaces a token. Each column of the successor is copied, new, or a default."""
    changed = _assigned((*ROTATED, "updated"), after=3)
    place = 3 + len(ROTATED) + 1
    own = {name: f"${place + number}::{_type(name)}" for number, name in enumerate(_OWN, start=1)}
    fields = [field for field in RefreshToken._meta.concrete_fields if not field.primary_key]
    names = ", ".join(str(field.column) for field in fields)
    values = ", ".join(own.get(field.attname) or _inherited(field) for field in fields)
    # Table and column names come from the model, and literals from its defaults.
    spent = f"UPDATE {_table()} SET {changed} {_UNCHANGED} RETURNING *"  # noqa: S608
    return f"WITH spent AS ({spent}) INSERT INTO {_table()} ({names}) SELECT {values} FROM spent RETURNING id"  # noqa: S608


_UNCHANGED = "WHERE id = $1::bigint AND tenant_id = $2::text AND updated = $3::timestamptz AND revoked IS NULL AND NOT is_rotated"
_NOTE = LoopStatement("refresh_token_noted", _noted)
_ROTATE = LoopStatement("refresh_token_rotated", _rotated)


def _assigned(names: tuple[str, ...], *, after: int) -> str:
    return ", ".join(f"{_column(name)} = ${after + number}::{_type(name)}" for number, name in enumerate(names, start=1))


def _inherited(field: models.Field[Any, Any]) -> str:
    if field.attname in INHERITED:
        return f"spent.{field.column}"
    value = field.get_db_prep_save(field.value_from_object(RefreshToken(token="")), connection)
    connection.ensure_connection()
    return sql.Literal(value).as_string(connection.connection)


def _column(name: str) -> str:
    return str(_field(name).column)


def _field(name: str) -> models.Field[Any, Any]:
    return next(field for field in RefreshToken._meta.concrete_fields if field.attname == name)


def _type(name: str) -> str:
    """Return the SQL type of a value. The type of a text has no length: a cast to `varchar(n)` would cut a longer text, not refuse it."""
    field = _field(name)
    is_text = isinstance(field, models.CharField | models.TextField)
    return "text" if is_text else str(field.db_type(connection))


def _table() -> str:
    return str(RefreshToken._meta.db_table)
