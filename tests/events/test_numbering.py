"""Positions are dense and follow the commit order of each document, also after kills and with several numberers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import orjson
import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from pytest_django.fixtures import Settings

from events.log import numbering
from events.log.numbering import NumberedBatch, Numberer, number_batch, number_tenant, open_connection
from events.models import Event, Head, LogEntry, Outbox
from foundation.database.session_settings import SESSION_SETTINGS
from identity.models import Connection, Tenant, User
from identity.services import users
from tests.events.log_reading import folded, numbered, tables
from tests.factories.models.identity import ConnectionFactory, TenantFactory


@pytest.fixture
def database(committed_db: None) -> Iterator[psycopg.Connection]:
    with open_connection() as opened:
        yield opened


def in_threads(count: int, work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def run(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_batches_keep_the_order_of_the_changes(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    number_tenant(tenant.pk)
    for name in "abcde":
        users.create_user(tenant_id=tenant.pk, connection=database_connection, email=f"{name}@example.test")
    changes = list(Outbox.objects.filter(tenant_id=tenant.pk).order_by("event").values_list("event", flat=True))
    monkeypatch.setattr(numbering, "BATCH", 2)
    batch = number_tenant(tenant.pk, database)
    assert batch is not None
    assert batch.count == len(changes) == 5
    assert list(LogEntry.objects.filter(tenant_id=tenant.pk).order_by("position").values_list("event_id", flat=True))[-5:] == changes


def test_a_reader_that_follows_row_ids_misses_an_event_that_commits_late(tenant: Tenant, database_connection: Connection) -> None:
    number_tenant(tenant.pk)
    slow_recorded, fast_committed = threading.Event(), threading.Event()

    def slow(_: int) -> None:
        with transaction.atomic():
            users.create_user(tenant_id=tenant.pk, connection=database_connection, email="slow@example.test")
            slow_recorded.set()
            assert fast_committed.wait(10)

    writer = threading.Thread(target=in_threads, args=(1, slow))
    writer.start()
    assert slow_recorded.wait(10)
    users.create_user(tenant_id=tenant.pk, connection=database_connection, email="fast@example.test")
    seen_by_id = [event.pk for event in Event.objects.filter(tenant_id=tenant.pk).order_by("id")]
    number_tenant(tenant.pk)
    first_page = list(LogEntry.objects.filter(tenant_id=tenant.pk).order_by("position").values_list("event_id", flat=True))
    fast_committed.set()
    writer.join()
    late = Event.objects.exclude(pk__in=seen_by_id).get(tenant_id=tenant.pk)
    # A reader that follows row ids now asks for ids above the highest id that it has seen. The late event has a lower id, so the reader
    # never gets this event.
    assert late.pk < max(seen_by_id)
    number_tenant(tenant.pk)
    pages = list(LogEntry.objects.filter(tenant_id=tenant.pk).order_by("position").values_list("event_id", flat=True))
    assert pages == [*first_page, late.pk]


def test_two_numberers_leave_no_gap_and_keep_the_order_of_concurrent_writers(tenant: Tenant, database_connection: Connection) -> None:
    made = [users.create_user(tenant_id=tenant.pk, connection=database_connection, name=f"user {index}") for index in range(4)]
    done = threading.Event()

    def number(_: int) -> None:
        with open_connection() as opened:
            while not done.is_set():
                number_tenant(tenant.pk, opened)

    def write(writer: int) -> None:
        for turn in range(25):
            user = made[(writer + turn) % len(made)]
            try:
                with transaction.atomic():
                    users.update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"nickname": f"{writer}.{turn}"})
                    if turn % 7 == writer:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                pass

    numberers = threading.Thread(target=in_threads, args=(2, number))
    numberers.start()
    try:
        in_threads(5, write)
    finally:
        done.set()
        numberers.join()
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)
    assert not Outbox.objects.filter(tenant_id=tenant.pk).exists()


def test_positions_are_written_to_disk_before_any_reader_sees_them(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection
) -> None:
    # An operator may configure asynchronous commits for the whole database.
    database.execute("SET synchronous_commit = off")
    for name in "abcdefgh":
        users.create_user(tenant_id=tenant.pk, connection=database_connection, name=name)
        (before,) = database.execute("SELECT pg_current_wal_insert_lsn()").fetchone() or ()
        assert number_batch(database, tenant.pk) is not None
        (is_flushed,) = database.execute("SELECT pg_current_wal_flush_lsn() > %s::pg_lsn", [before]).fetchone() or ()
        # After an asynchronous commit, this check would fail: such a commit is written to disk up to 200 ms later.
        assert is_flushed


def test_a_numberer_numbers_events_that_are_committed_while_it_waits_for_a_log(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection
) -> None:
    number_tenant(tenant.pk)
    results: list[NumberedBatch | None] = []
    with open_connection() as blocker, blocker.transaction():
        blocker.execute("SELECT 1 FROM events_head WHERE tenant_id = %s FOR UPDATE", [tenant.pk])
        waiting = threading.Thread(target=lambda: results.append(number_batch(database, tenant.pk)))
        waiting.start()
        wait_until(lambda: lock_waiters() > 0)
        users.create_user(tenant_id=tenant.pk, connection=database_connection, name="meanwhile")
    waiting.join(10)
    assert results[0] is not None
    assert results[0].count == 1


def test_events_of_a_tenant_without_a_log_are_dropped(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection
) -> None:
    Head.objects.filter(pk=tenant.pk).delete()
    assert number_batch(database, tenant.pk) is None
    assert not Outbox.objects.filter(tenant_id=tenant.pk).exists()


def test_recorded_at_never_decreases(tenant: Tenant, database_connection: Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE events_head SET recorded_at = now() + interval '1 hour' WHERE tenant_id = %s", [tenant.pk])
    before = Head.objects.get(pk=tenant.pk).recorded_at
    number_tenant(tenant.pk)
    assert LogEntry.objects.get(tenant_id=tenant.pk, position=1).recorded_at == before


def test_a_numberer_numbers_the_events_of_a_killed_process(tenant: Tenant, database_connection: Connection, settings: Settings) -> None:
    assert Outbox.objects.filter(tenant_id=tenant.pk).exists()
    settings.EVENTS_NUMBERER_ENABLED = True
    thread = Numberer()
    thread.start()
    try:
        wait_until(lambda: not Outbox.objects.filter(tenant_id=tenant.pk).exists())
    finally:
        thread.stop()
    assert LogEntry.objects.filter(tenant_id=tenant.pk).count() == 1


def test_a_burst_of_one_tenant_delays_another_tenant_by_at_most_one_batch(
    tenant: Tenant, database_connection: Connection, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbering, "BATCH", 5)
    other = TenantFactory.create(id=f"{tenant.pk}-b", name="other", host=f"b.{tenant.pk}.example.test")
    for number in range(22):
        users.create_user(tenant_id=tenant.pk, connection=database_connection, name=f"user {number}")
    ConnectionFactory.create(tenant_id=other.pk, name="people", strategy="database")
    announced: list[tuple[str, int]] = []
    monkeypatch.setattr(numbering, "_callbacks", [lambda tenant_id, position: announced.append((tenant_id, position))])
    settings.EVENTS_NUMBERER_ENABLED = True
    thread = Numberer()
    thread.notify(tenant.pk)
    thread.notify(other.pk)
    try:
        wait_until(lambda: not Outbox.objects.filter(tenant_id__in=[tenant.pk, other.pk]).exists())
    finally:
        thread.stop()
    ours = [one for one in announced if one[0] in {tenant.pk, other.pk}]
    assert (other.pk, 1) in ours[:2]
    assert ours[-1] == (tenant.pk, 23)


def test_an_idle_transaction_that_locks_a_log_delays_other_logs_only_briefly(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    other = TenantFactory.create(id=f"{tenant.pk}-b", name="other", host=f"b.{tenant.pk}.example.test")
    ConnectionFactory.create(tenant_id=other.pk, name="people", strategy="database")
    settings.EVENTS_NUMBERER_ENABLED = True
    thread = Numberer()
    with database.transaction():
        database.execute("SELECT 1 FROM events_head WHERE tenant_id = %s FOR UPDATE", [tenant.pk])
        thread.notify(tenant.pk)
        thread.notify(other.pk)
        # The other log must not wait for the locked log. With the usual settings, a database session would wait up to ten seconds for the
        # lock.
        wait_until(lambda: not Outbox.objects.filter(tenant_id=other.pk).exists(), seconds=5)
        assert Outbox.objects.filter(tenant_id=tenant.pk).exists()
    try:
        wait_until(lambda: not Outbox.objects.filter(tenant_id=tenant.pk).exists())
    finally:
        thread.stop()
    # After a failure of the database, the numberer pauses and opens a new connection. A locked log is no failure.
    assert f"a transaction locks the log of {tenant.pk}" in caplog.text
    assert "numbering paused" not in caplog.text


def test_a_request_that_numbers_a_locked_log_gets_a_database_error(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"lock_timeout": "100"}
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], SESSION_SETTINGS, limits)
    with database.transaction():
        database.execute("SELECT 1 FROM events_head WHERE tenant_id = %s FOR UPDATE", [tenant.pk])
        with pytest.raises(OperationalError):
            number_tenant(tenant.pk)
    assert number_tenant(tenant.pk) is not None


def test_no_event_is_lost_when_a_writer_is_killed_between_commit_and_numbering(tenant: Tenant, database_connection: Connection) -> None:
    program = (
        "import django, os, signal; django.setup()\n"
        "from identity.models import Connection; from identity.services import users\n"
        f"row = Connection.all_tenants.get(pk={database_connection.pk!r})\n"
        "for index in range(1000):\n"
        f"    users.create_user(tenant_id={tenant.pk!r}, connection=row, name=f'user {{index}}')\n"
        "    print(index, flush=True)\n"
    )
    info = connection.connection.info
    url = f"postgresql://{info.user}:{info.password}@/{info.dbname}?host={info.host}&port={info.port}"
    environment = {**os.environ, "DATABASE_URL": url, "EVENTS_NUMBERER_ENABLED": "1"}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(40)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout]
    events = numbered(tenant.pk)
    created = {event["data"]["object"]["name"] for event in events if event["type"] == "user.created"}
    assert {f"user {index}" for index in acknowledged} <= created
    assert created == set(User.objects.of(tenant.pk).values_list("name", flat=True))
    assert folded(events) == tables(tenant.pk)


def test_events_of_two_tenants_in_one_transaction_are_numbered_in_separate_logs(tenant: Tenant, database_connection: Connection) -> None:

    with transaction.atomic():
        other = TenantFactory.create(id=f"{tenant.pk}-b", name="other", host=f"b.{tenant.pk}.example.test")
        ConnectionFactory.create(tenant_id=other.pk, name="people", strategy="database")
        users.create_user(tenant_id=tenant.pk, connection=database_connection, name="Ada")
    assert [event["type"] for event in numbered(tenant.pk)] == ["connection.created", "user.created"]
    assert [event["type"] for event in numbered(other.pk)] == ["connection.created"]


def test_the_stored_body_of_an_event_never_changes(tenant: Tenant, database_connection: Connection) -> None:
    body = bytes(Event.objects.get(tenant_id=tenant.pk).body)
    numbered(tenant.pk)
    assert bytes(Event.objects.get(tenant_id=tenant.pk).body) == body
    assert orjson.loads(body)["type"] == "connection.created"


def test_a_tenant_whose_numbering_failed_is_numbered_again(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection
) -> None:
    numberer = Numberer()
    numberer._add([tenant.pk])
    # The failure is a canceled statement, because a numberer does not count a locked log as a failure.
    database.execute("SET statement_timeout = '50ms'")
    with open_connection() as blocker, blocker.transaction():
        blocker.execute("SELECT 1 FROM events_head WHERE tenant_id = %s FOR UPDATE", [tenant.pk])
        with pytest.raises(psycopg.errors.QueryCanceled):
            numberer._number_pending(database)
    database.execute("RESET statement_timeout")
    numberer._number_pending(database)
    assert LogEntry.objects.filter(tenant_id=tenant.pk).count() == 1


def test_numbering_is_requested_after_the_commit_and_not_after_a_rollback(
    tenant: Tenant, database_connection: Connection, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EVENTS_NUMBERER_ENABLED = True
    numberer = Numberer()
    # The numberer treats this thread as its own thread and starts no other. This thread numbers nothing, so pending tenants stay pending.
    numberer._thread = threading.current_thread()
    monkeypatch.setitem(numbering._numberers, os.getpid(), numberer)
    with contextlib.suppress(ZeroDivisionError), transaction.atomic():
        users.create_user(tenant_id=tenant.pk, connection=database_connection, name="lost")
        raise ZeroDivisionError
    with transaction.atomic():
        users.create_user(tenant_id=tenant.pk, connection=database_connection, name="kept")
        assert list(numberer._pending) == []
    assert list(numberer._pending) == [tenant.pk]


def test_the_events_of_a_tenant_are_numbered_on_the_given_database_connection(tenant: Tenant, database_connection: Connection) -> None:
    given = open_connection()
    assert number_tenant(tenant.pk, given) is not None
    given.close()
    with pytest.raises(psycopg.OperationalError, match="closed"):
        number_tenant(tenant.pk, given)


def test_a_database_connection_whose_session_settings_are_refused_is_closed(committed_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], SESSION_SETTINGS, {"lock_timeout": "soon"})
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        open_connection()
    (opened,) = [frame.f_locals["opened"] for frame, _ in traceback.walk_tb(refused.tb) if "opened" in frame.f_locals]
    assert opened.closed


def test_a_listener_that_is_added_twice_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "_callbacks", [])
    heard: list[int] = []

    def listen(_: str, position: int) -> None:
        heard.append(position)

    for _ in range(2):
        numbering.on_numbered(listen)
    Numberer()._announce(NumberedBatch("acme", 1, 7, datetime.now(UTC)))
    assert heard == [7]


def test_a_numberer_whose_thread_has_ended_starts_another_thread(committed_db: None) -> None:
    numberer = Numberer()
    threads = []
    for _ in range(2):
        numberer.start()
        assert numberer._thread is not None
        assert numberer._thread.is_alive()
        threads.append(numberer._thread)
        numberer.stop()
    assert threads[0] is not threads[1]


def test_a_notified_numberer_numbers_a_tenant_and_calls_the_listeners_once(
    tenant: Tenant, database_connection: Connection, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EVENTS_NUMBERER_ENABLED = True
    heard: list[tuple[str, int]] = []
    monkeypatch.setattr(numbering, "_callbacks", [lambda *numbered: heard.append(numbered)])
    numberer = Numberer()
    numberer.notify(tenant.pk)
    try:
        wait_until(lambda: (tenant.pk, 1) in heard)
        # No event waits for a position, so the listeners are not called again.
        numberer.notify(tenant.pk)
    finally:
        numberer.stop()
    # Ignore other tenants: earlier tests in the same database may have left events of other tenants, which the numberer numbers, too.
    assert [position for tenant_id, position in heard if tenant_id == tenant.pk] == [1]
    assert numberer._thread is not None
    assert not numberer._thread.is_alive()
    assert not numberer._pending


def lock_waiters() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return int(cursor.fetchone()[0])


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.01)
