"""Running a statement on Django's connection and reading what it returns."""

from __future__ import annotations

from typing import Any

from django.db import connection

Row = tuple[Any, ...]


def execute(statement: str, parameters: Any = None) -> int:
    """Run a statement; return the number of rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        count: int = cursor.rowcount
        return count


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
