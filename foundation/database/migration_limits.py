"""Limits how long a migration waits for a lock, so that it does not block the requests of running processes. Decision: docs/adr/0130.

While a migration waits for a lock on a table, every later statement on this table waits behind the migration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from foundation.database.session_settings import set_statement

_CONCURRENTLY = re.compile(r"\s*(CREATE (?:UNIQUE )?|DROP |RE)INDEX CONCURRENTLY\s+(?:IF (?:NOT )?EXISTS\s+)?\"?(\w+)", re.IGNORECASE)
_INVALID = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s)) AND NOT indisvalid"
_LONG_TRANSACTIONS = """
SELECT pid, coalesce(nullif(application_name, ''), 'no name'), state, extract(epoch FROM clock_timestamp() - xact_start)::int
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - make_interval(secs => %s)
ORDER BY xact_start LIMIT 5
"""


def set_limits(database: BaseDatabaseWrapper, *, lock_seconds: float) -> None:
    """Let the session wait at most `lock_seconds` for a lock, and let its statements run for any time."""
    with database.cursor() as cursor:
        cursor.execute(*set_statement({"lock_timeout": int(lock_seconds * 1000), "statement_timeout": 0}))


@contextmanager
def concurrent_indexes(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Let CREATE or DROP INDEX CONCURRENTLY wait for any time, and drop an invalid index of the same name before a CREATE.

    Such a statement waits for all older transactions, and blocks none of them. If a CREATE is canceled, an invalid index remains.
    """
    with database.execute_wrapper(_unlimited):
        yield


def long_transactions(database: BaseDatabaseWrapper, *, seconds: float) -> list[str]:
    """Return a description of each transaction of another session that is open for longer than `seconds`."""
    with database.cursor() as cursor:
        cursor.execute(_LONG_TRANSACTIONS, [seconds])
        return [f"process {pid} ({name}), {state}, open for {age} s" for pid, name, state, age in cursor.fetchall()]


def _unlimited(execute: Callable[..., Any], sql: Any, parameters: Any, many: bool, context: dict[str, Any]) -> Any:  # noqa: FBT001  (Django)
    found = _CONCURRENTLY.match(str(sql))
    database: BaseDatabaseWrapper = context["connection"]
    # Inside a transaction, PostgreSQL refuses a CONCURRENTLY statement, and the caller gets the error.
    if found is None or database.in_atomic_block:
        return execute(sql, parameters, many, context)
    verb, index = found.groups()
    with database.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        (earlier,) = cursor.fetchone()
        cursor.execute("SET lock_timeout = 0")
        if verb.upper().startswith("CREATE"):
            _drop_invalid(cursor, index)
        result = execute(sql, parameters, many, context)
        cursor.execute(*set_statement({"lock_timeout": earlier}))
    return result


def _drop_invalid(cursor: Any, index: str) -> None:
    cursor.execute(_INVALID, [index])
    if cursor.fetchone():
        cursor.execute(f'DROP INDEX CONCURRENTLY "{index}"')
