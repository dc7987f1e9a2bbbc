"""Running a statement on Django's connection and reading what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

Row = tuple[Any, ...]


def execute(statement: str, parameters: Any = None) -> int:
    """Run a statement; return the number of rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        count: int = cursor.rowcount
        return count


def run_script(statements: Sequence[str], parameters: Any) -> list[tuple[int, Row | None]]:
    """Run statements that share their parameters, in one message; return for each its row count and its first row.

    Outside a transaction they are one of their own. Each has a snapshot of its own, as if they were sent one by one:
    psycopg's client-side cursor, Django's default, sends the text in the simple protocol.
    """
    results: list[tuple[int, Row | None]] = []
    with connection.cursor() as cursor:
        cursor.execute(";".join(statements), parameters)
        for _ in statements:
            results.append((cursor.rowcount, cursor.fetchone() if cursor.description else None))
            cursor.nextset()
    return results


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
