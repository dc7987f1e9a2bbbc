"""The two inverted indexes of the search. They need extensions that a database server may lack or forbid.

Searches work without these indexes: the rows are then read one by one, within the time limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError

from identity.search.fields import INDEXED_TEXT

TABLE = "identity_user"
# A GIN index collects new entries in a pending list that every search reads. Above this size, a write merges the list. With
# PostgreSQL's default of 4 MB, each search took 10 ms longer, and a write that merged the list took a quarter of a second.
_PENDING_KILOBYTES = 1024
_TEXT = " || E'\\n' || ".join(f"COALESCE({column}, '')" for column in INDEXED_TEXT)


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """One index: its name, its columns, the extensions it needs, and the searches that are slow without it."""

    name: str
    columns: str
    extensions: tuple[str, ...]
    serves: str


# The tenant is the first column of both indexes, so values that are frequent in other tenants cost nothing.
INDEXES = (
    SearchIndex(
        "identity_user_by_text",
        f"tenant_id, (LOWER(E'\\n' || {_TEXT} || E'\\n')) gin_trgm_ops",
        ("btree_gin", "pg_trgm"),
        "names and parts of addresses",
    ),
    SearchIndex(
        "identity_user_by_metadata",
        "tenant_id, app_metadata jsonb_path_ops, user_metadata jsonb_path_ops",
        ("btree_gin",),
        "metadata",
    ),
)


def build_search_indexes(connection: Any) -> list[str]:
    """Build the missing indexes while the service runs. Returns a message for each index that cannot be built.

    Must run outside a transaction. Rebuilds an index that an interrupted run has left invalid. Does not raise errors of the database: the
    message contains the first line of the error.
    """
    return [problem for index in INDEXES if (problem := _built(connection, index))]


def missing_search_indexes(connection: Any) -> list[SearchIndex]:
    """Return the indexes that searches cannot use because they are missing or invalid."""
    return [index for index in INDEXES if not _is_valid(connection, index)]


def _built(connection: Any, index: SearchIndex) -> str:
    if _is_valid(connection, index):
        return ""
    try:
        with connection.cursor() as cursor:
            # The service's connections cancel a statement after 30 seconds; an index of a large table takes minutes.
            cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0")
            for extension in index.extensions:
                cursor.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}")
            cursor.execute(
                f"CREATE INDEX CONCURRENTLY {index.name} ON {TABLE} USING gin ({index.columns})"
                f" WITH (gin_pending_list_limit = {_PENDING_KILOBYTES})"
            )
    except DatabaseError as error:
        return (
            f"The index {index.name} is missing: searches of users by {index.serves} read users row by row. "
            f"It needs the extensions {' and '.join(index.extensions)}; the server says: {str(error).strip().splitlines()[0]}. "
            f"Ask an administrator of the database to create the extensions, then run: manage.py build_search_indexes"
        )
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout; RESET lock_timeout")
    return ""


def _is_valid(connection: Any, index: SearchIndex) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [index.name])
        found = cursor.fetchone()
    return bool(found and found[0])
