"""Functions for the transactions of services. These transactions lock root rows first, and are repeated after deadlocks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import psycopg.errors
from django.db import DatabaseError, connection, models, transaction

from foundation.hooks import work_ends

Params = ParamSpec("Params")
Result = TypeVar("Result")

_ATTEMPTS = 4
_RACES = (psycopg.errors.DeadlockDetected, psycopg.errors.ForeignKeyViolation)


def unit_of_work(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """Run `function` in a transaction. If no outer transaction is open, repeat `function` after a race: it runs at most four times.

    A race is a deadlock, or a foreign key violation at commit: another transaction has deleted the row to which a new relation refers.
    Inside an outer transaction, `function` runs without a savepoint, and either error is raised to the caller: only the outermost block can
    be repeated as a whole.
    """

    @functools.wraps(function)
    def wrapper(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        if connection.in_atomic_block:
            return function(*args, **kwargs)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with transaction.atomic():
                    result = function(*args, **kwargs)
                    work_ends.send(sender=None, result=result)
                return result
            except DatabaseError as error:
                if attempt == _ATTEMPTS or not isinstance(error.__cause__, _RACES):
                    raise
        raise AssertionError("the loop returns or raises")

    return wrapper


def after_commit(work: Callable[Params, object], *args: Params.args, **kwargs: Params.kwargs) -> None:
    """Call `work` after the commit; without a transaction, call it now. An exception of `work` is only logged.

    Django logs the exception with the name of the callback. A `partial` has no name, so with a `partial` this logging would
    raise an error in the caller. Therefore the callback is a plain function.
    """

    def call() -> None:
        work(*args, **kwargs)

    transaction.on_commit(call, robust=True)


def lock_name(name: str) -> None:
    """Lock a name until the transaction ends. For names that no single row represents, such as a user id that moves between tables."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def lock_names(names: Iterable[str]) -> None:
    """Lock several names, always in one order, until the transaction ends."""
    with connection.cursor() as cursor:
        keys = "SELECT DISTINCT hashtextextended(name, 0) AS key FROM unnest(%s::text[]) AS name ORDER BY key"
        cursor.execute(f"SELECT pg_advisory_xact_lock(key) FROM ({keys}) AS keys", [list(names)])  # noqa: S608  (no part of it is a value)


def lock_rows(model: type[models.Model], keys: Iterable[Any]) -> None:
    """Lock the rows of `model` with these primary keys, in key order, until the transaction ends.

    `FOR NO KEY UPDATE` lets other transactions check foreign keys to the row. Services lock the root of a document before they
    read or write any of its rows. Without this lock, two transactions on different rows of one document would not see each other's changes.
    The last event would then show a state that never existed.
    """
    table = connection.ops.quote_name(model._meta.db_table)
    key = connection.ops.quote_name(str(model._meta.pk.column))
    with connection.cursor() as cursor:
        # Identifiers come from the model's own metadata.
        cursor.execute(
            f"SELECT 1 FROM {table} WHERE {key} = ANY(%s) ORDER BY {key} FOR NO KEY UPDATE",  # noqa: S608
            [sorted(set(keys))],
        )
