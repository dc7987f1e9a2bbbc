"""Errors of a PostgreSQL server that is no longer the primary.

A refused write closes the connection. If the connection fails during a commit, the service cannot know whether the change was saved, and
reports the commit as in doubt.
"""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection, transaction

from authapi.problems import exception_handler
from events.log.numbering import open_connection
from events.models import Tally
from foundation.database.engine.base import CommitInDoubt, NotThePrimary
from tests.deadlines import eventually


def kill_the_server_process(pid: int) -> None:
    with open_connection() as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
        eventually(lambda: other.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone() == (0,))


def own_pid() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid: int = cursor.fetchone()[0]
    return pid


def refused_write() -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        Tally.objects.create(name="refused")


def write_before_the_server_dies() -> None:
    with transaction.atomic():
        Tally.objects.create(name="in doubt")
        kill_the_server_process(own_pid())


def write_after_the_server_died() -> None:
    with transaction.atomic():
        kill_the_server_process(own_pid())
        Tally.objects.create(name="lost")


def test_a_write_that_a_standby_refuses_closes_the_database_connection(committed_db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    before = own_pid()

    with pytest.raises(NotThePrimary):
        Tally.objects.create(name="refused")

    assert own_pid() != before
    Tally.objects.create(name="accepted")
    Tally.objects.filter(name="accepted").delete()


def test_a_refused_write_ends_its_transaction_and_the_next_transaction_works(committed_db: None) -> None:
    with pytest.raises(NotThePrimary):
        refused_write()

    with transaction.atomic():
        assert not Tally.objects.filter(name="refused").exists()


def test_a_commit_during_which_the_database_connection_fails_is_reported_as_in_doubt(committed_db: None) -> None:
    with pytest.raises(CommitInDoubt):
        write_before_the_server_dies()

    assert not Tally.objects.filter(name="in doubt").exists()


def test_a_failure_before_the_commit_is_not_reported_as_in_doubt(committed_db: None) -> None:
    with pytest.raises(OperationalError) as failed:
        write_after_the_server_died()

    assert not isinstance(failed.value, CommitInDoubt)


def test_the_error_for_a_commit_in_doubt_says_that_it_may_have_succeeded() -> None:
    answer = exception_handler(CommitInDoubt(), {})

    assert answer.status_code == 503
    assert answer.data["message"] == "The change may have been saved. Read it before you try again."
    assert answer.headers["Retry-After"] == "2"
