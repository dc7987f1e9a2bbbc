"""Runs a statement on Django's connection and reads its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from django.db import connection
from django.db.backends.utils import CursorWrapper

Row = tuple[Any, ...]
Named = TypeVar("Named")


def execute(statement: str, parameters: Any = None) -> int:
    """Run a statement; return the number of rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        count: int = cursor.rowcount
        return count


@dataclass(frozen=True, eq=False)
class Prepared:
    """A statement that a connection parses and plans once, because planning the statement costs more than running it.

    `types` maps its parameters, written `%(name)s`, to their PostgreSQL types.
    """

    name: str
    text: str
    types: Mapping[str, str]

    @property
    def declaration(self) -> str:
        text = self.text % {parameter: f"${number}" for number, parameter in enumerate(self.types, start=1)}
        return f"PREPARE {self.name} ({', '.join(self.types.values())}) AS {text}"

    @property
    def call(self) -> str:
        return f"EXECUTE {self.name} ({', '.join(f'%({parameter})s' for parameter in self.types)})"


# The setting is local to the script's transaction, so that a pooled connection does not keep it.
_NO_WAIT = "SET LOCAL synchronous_commit = off"

# The statements that a connection has prepared; a new connection starts with none.
_prepared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def run_script(
    statements: Sequence[Prepared], parameters: Mapping[str, Any], *, is_repeatable: bool = False
) -> list[tuple[int, Row | None]]:
    """Run statements one after the other, in one message. Return the row count and the first row of each statement.

    Outside a transaction, the statements form one transaction. Each statement has a separate database snapshot, as if each was sent
    separately: psycopg's client-side cursor (Django's default) sends the message in the simple protocol, in which PostgreSQL takes a
    snapshot for each statement. With `is_repeatable` the commit does not wait for the disk: a crash of the database can undo the last
    commits, so the work must be safe to repeat.
    """
    with connection.cursor() as cursor:
        prepare(cursor, statements)
        cursor.execute(text_of(tuple(statements), is_repeatable=is_repeatable), parameters)
        return _results_of(cursor.cursor, len(statements), skip=1 if is_repeatable else 0)


@cache
def text_of(statements: tuple[Prepared, ...], *, is_repeatable: bool) -> str:
    """Return the text that runs prepared statements in one transaction; see `run_script`."""
    calls = [statement.call for statement in statements]
    return ";".join([_NO_WAIT, *calls] if is_repeatable else calls)


def _results_of(cursor: Any, count: int, *, skip: int) -> list[tuple[int, Row | None]]:
    """Skip the first `skip` results and read the next `count`. Uses psycopg's cursor, because Django's cursor wraps every step."""
    results: list[tuple[int, Row | None]] = []
    for number in range(skip + count):
        if number:
            cursor.nextset()
        if number >= skip:
            # Reading the cursor's description would build an object for every column.
            has_columns = cursor.pgresult is not None and cursor.pgresult.nfields > 0
            results.append((cursor.rowcount, cursor.fetchone() if has_columns else None))
    return results


def forget_plans() -> None:
    """Let the server plan prepared statements again. Otherwise it would keep a plan for empty tables after the tables have been filled."""
    execute("DISCARD PLANS")


def prepare(cursor: CursorWrapper, statements: Sequence[Prepared]) -> None:
    """Prepare the statements that the cursor's connection lacks."""
    known = _prepared.setdefault(cursor.db.connection, set())
    for statement in statements:
        if statement.name not in known:
            cursor.execute("SET plan_cache_mode = force_generic_plan")
            cursor.execute(statement.declaration)
            known.add(statement.name)


def fetch_one(statement: str, parameters: Any = None) -> Row | None:
    """Return the first row of a statement, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        row: Row | None = cursor.fetchone()
        return row


def fetch_all(statement: str, parameters: Any = None) -> list[Row]:
    """Return every row of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[Row] = cursor.fetchall()
        return rows


def rows_as(kind: type[Named], statement: str, parameters: Any = None) -> list[Named]:
    """Return every row of a statement as a `kind`, whose fields are the column names."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        names = [column.name for column in cursor.description]
        return [kind(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def row_as(kind: type[Named], statement: str, parameters: Any = None) -> Named | None:
    """Return the first row of a statement as a `kind`, like `rows_as`, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        row = cursor.fetchone()
        return None if row is None else kind(**dict(zip([column.name for column in cursor.description], row, strict=True)))
