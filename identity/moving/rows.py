"""The rows of a move: COPY from the source, COPY into the target with shifted keys, and the digests that both sides compare."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection

from foundation.database.session_settings import session_settings, set_statement
from identity.moving.tables import CarriedTable, Column, Offsets

# A part ends after this number of bytes, or after this number of rows. Each part is encrypted as a whole, and later inserted as a whole.
PART_BYTES = 8 * 1024 * 1024
PART_ROWS = 50_000
_STAGED = "moving_rows"
# The imported keys begin this many numbers after the present value of the sequence, because other transactions may take numbers meanwhile.
_GAP = 10_000
# Sums the two halves of the digests of the rows separately. A sum does not depend on the order of the rows.
_DIGEST = "coalesce(sum(('x' || substr({row}, 1, 15))::bit(60)::bigint), 0)::text || '-' || "
_DIGEST += "coalesce(sum(('x' || substr({row}, 17, 15))::bit(60)::bigint), 0)::text"


@dataclass(frozen=True)
class Summary:
    """The number of rows of a table, their digest, and the first and last primary key from a sequence."""

    rows: int
    digest: str
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class Cut:
    """Some rows of one table in PostgreSQL's text format."""

    content: bytes
    rows: int
    last: str


@contextmanager
def without_time_limit() -> Iterator[None]:
    """Let statements of this connection run longer than the statements of a web request: a COPY of a large table takes minutes."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(*set_statement(session_settings()))


def summary_at_source(table: CarriedTable, tenant_id: str) -> Summary:
    """Return the summary of a table at the source. PostgreSQL computes it."""
    return _summary(table, tenant_id, [column.leaving("t") for column in table.columns], {})


def summary_at_target(table: CarriedTable, tenant_id: str, offsets: Offsets) -> Summary:
    """Return the summary that the source had, computed from the rows at the target."""
    return _summary(table, tenant_id, [column.left("t", offsets) for column in table.columns], offsets)


def _summary(table: CarriedTable, tenant_id: str, values: list[str], offsets: Offsets) -> Summary:
    compared = [column.compared(value) for column, value in zip(table.columns, values, strict=True)]
    digest = _DIGEST.format(row=f"md5(ROW({', '.join(compared)})::text)")
    bounds = f'min(t."{table.key}"), max(t."{table.key}")' if table.is_shifted else "NULL, NULL"
    where, shift = table.rows, offsets.get(table.name)
    if shift is not None and table.is_shifted:
        # The audit log may have entries from a time when the tenant was here before. They do not belong to the import.
        where += f' AND t."{table.key}" BETWEEN {shift.first + shift.offset} AND {shift.last + shift.offset}'
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), {digest}, {bounds} FROM {table.name} t WHERE {where}", {"tenant": tenant_id})  # noqa: S608
        return Summary(*cursor.fetchone())


def cuts(table: CarriedTable, tenant_id: str, *, late: bool, after: str | None) -> Iterator[Cut]:
    """Yield the tenant's rows after the key `after`, cut into parts, in the order of the primary key. Keeps one part in memory. With
    `late`, yields only the key and the columns for `fill_late`.
    """
    columns = (table.columns[0], *table.late) if late else table.early
    where = table.rows
    if late:
        where += " AND (" + " OR ".join(f't."{column.name}" IS NOT NULL' for column in table.late) + ")"
    if after is not None:
        where += f' AND t."{table.key}" > %(after)s::{table.columns[0].type}'
    values = ", ".join(column.leaving("t") for column in columns)
    statement = f'COPY (SELECT {values} FROM {table.name} t WHERE {where} ORDER BY t."{table.key}") TO STDOUT'  # noqa: S608
    lines: list[bytes] = []
    size = 0
    for line in _copied(statement, {"tenant": tenant_id, "after": after}):
        lines.append(line)
        size += len(line)
        if size >= PART_BYTES or len(lines) >= PART_ROWS:
            yield _cut(lines)
            lines, size = [], 0
    if lines:
        yield _cut(lines)


def _copied(statement: str, values: dict[str, Any]) -> Iterator[bytes]:
    """Yield the lines of a COPY. The COPY has its own connection, because the caller queries the database between two lines."""
    apart = connection.copy()
    try:
        with apart.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
            with cursor.cursor.copy(statement, values) as copy:
                for line in copy:
                    yield bytes(line)
    finally:
        apart.close()


def _cut(lines: list[bytes]) -> Cut:
    # The key is the first value. Keys contain no character that the text format escapes.
    return Cut(b"".join(lines), len(lines), lines[-1].split(b"\t", 1)[0].strip().decode())


def insert(table: CarriedTable, content: bytes, offsets: Offsets) -> int:
    """Insert rows of the archive with shifted keys, inside the transaction of the caller; return their number."""
    columns = table.early
    with _staged(table, columns, content) as cursor:
        names = ", ".join(f'"{column.name}"' for column in columns)
        values = ", ".join(column.arriving("m", offsets) for column in columns)
        cursor.execute(f"INSERT INTO {table.name} ({names}) SELECT {values} FROM {_STAGED} m")  # noqa: S608  (names of the schema)
        return int(cursor.rowcount)


def fill_late(table: CarriedTable, content: bytes, offsets: Offsets) -> int:
    """Set the columns that refer to rows which were inserted later, inside the transaction of the caller; return the number of rows."""
    key = table.columns[0]
    with _staged(table, (key, *table.late), content) as cursor:
        changes = ", ".join(f'"{column.name}" = {column.arriving("m", offsets)}' for column in table.late)
        cursor.execute(f'UPDATE {table.name} t SET {changes} FROM {_STAGED} m WHERE t."{key.name}" = {key.arriving("m", offsets)}')  # noqa: S608
        return int(cursor.rowcount)


class _staged:  # noqa: N801  (used as a function)
    """A temporary table with rows of the archive as they were at the source."""

    def __init__(self, table: CarriedTable, columns: tuple[Column, ...], content: bytes) -> None:
        self._table, self._columns, self._content = table, columns, content

    def __enter__(self) -> Any:
        self._cursor = connection.cursor()
        definition = ", ".join(f'"{column.name}" {column.type}' for column in self._columns)
        self._cursor.execute(f"CREATE TEMPORARY TABLE {_STAGED} ({definition}) ON COMMIT DROP")
        with self._cursor.cursor.copy(f"COPY {_STAGED} FROM STDIN") as copy:
            copy.write(self._content)
        return self._cursor

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self._cursor.execute(f"DROP TABLE {_STAGED}")
        self._cursor.close()


def reserve(table: CarriedTable, first: int, last: int) -> int:
    """Take a block of primary keys from the sequence of a table, and return what an import adds to its keys.

    Call it under a lock that excludes other imports. The sequence advances at once, and is not set back if the import is removed.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [table.name, table.key])
        (sequence,) = cursor.fetchone()
        cursor.execute(f"SELECT last_value FROM {sequence}")  # noqa: S608  (a name of the schema)
        offset = int(cursor.fetchone()[0]) + _GAP - first
        cursor.execute("SELECT setval(%s, %s)", [sequence, last + offset])
    return offset
