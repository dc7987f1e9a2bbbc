"""Units of work are repeated after a deadlock, and rows are locked in the order of their keys."""

from __future__ import annotations

import threading
from typing import Any

import psycopg.errors
import pytest
from django.db import OperationalError, connection, transaction

from events.log.numbering import open_connection
from foundation.database.transactions import after_commit, lock_rows, unit_of_work
from identity.models import Connection, Tenant, User
from identity.services.users import create_user
from tests.deadlines import eventually


@pytest.fixture
def keys(tenant: Tenant, database_connection: Connection) -> list[int]:
    """Create two users and return their keys, the lowest key first."""
    return sorted(create_user(tenant_id=tenant.pk, connection=database_connection, name=name).pk for name in ("a", "b"))


def is_locked(key: int) -> bool:
    with open_connection() as other, other.transaction():
        return other.execute("SELECT 1 FROM identity_user WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED", [key]).fetchone() is None


def test_the_row_with_the_lowest_key_is_locked_first(keys: list[int]) -> None:
    lowest, highest = keys

    def lock_both() -> None:
        with transaction.atomic():
            lock_rows(User, [highest, lowest])
        connection.close()

    waiting = threading.Thread(target=lock_both)
    with open_connection() as holder, holder.transaction():
        holder.execute("SELECT 1 FROM identity_user WHERE id = %s FOR NO KEY UPDATE", [highest])
        waiting.start()
        eventually(lambda: is_locked(lowest))
    waiting.join()
    assert not is_locked(lowest)


def test_two_units_of_work_that_deadlock_are_both_completed(keys: list[int]) -> None:
    both_hold_one = threading.Barrier(2, timeout=10)
    one_is_complete = threading.Event()
    attempts: list[int] = []
    failures: list[Exception] = []

    @unit_of_work
    def lock(first: int, second: int) -> None:
        attempts.append(first)
        if attempts.count(first) > 1:
            # Wait until the other unit is complete. Otherwise, the repeated unit could lock its first row again before the other unit
            # wakes up, and both units would deadlock again.
            one_is_complete.wait(timeout=10)
        lock_rows(User, [first])
        if attempts.count(first) == 1:
            both_hold_one.wait()
        lock_rows(User, [second])

    def run(first: int, second: int) -> None:
        try:
            lock(first, second)
            one_is_complete.set()
        except Exception as error:
            failures.append(error)
        connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in (keys, keys[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(attempts) == 3


def test_a_unit_of_work_is_repeated_only_after_a_deadlock_and_never_inside_a_transaction(tenant: Tenant) -> None:
    attempts: list[bool] = []

    @unit_of_work
    def fail(cause: Any) -> None:
        attempts.append(connection.in_atomic_block)
        raise OperationalError from cause

    with pytest.raises(OperationalError):
        fail(psycopg.errors.QueryCanceled())
    with pytest.raises(OperationalError), transaction.atomic():
        fail(psycopg.errors.DeadlockDetected())
    assert len(attempts) == 2
    with pytest.raises(OperationalError):
        fail(psycopg.errors.DeadlockDetected())
    assert len(attempts) == 6


def test_an_error_after_the_commit_is_logged_and_does_not_stop_other_work(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    called: list[str] = []

    def fail(reason: str) -> None:
        raise RuntimeError(reason)

    with transaction.atomic():
        after_commit(fail, "no broker")
        after_commit(called.append, "next")
        assert called == []

    assert called == ["next"]
    assert "no broker" in caplog.text
