"""Pruning a log: which rows it deletes, and what concurrent readers and writers see."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections

from events import tasks
from events.log import retention
from events.log.cursor import Cursor
from events.log.numbering import number_tenant, open_connection
from events.log.reading import CursorExpired, LogReader, read_pool
from events.log.retention import DueLog, prune_log
from events.models import Head
from identity.models import Connection, Tenant
from tests.deadlines import eventually
from tests.events.long_logs import fill_log, remaining
from tests.factories.models.identity import TenantFactory, UserFactory
from tests.faults import worker
from tests.plans import read_in_vain

NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=31)
FRESH = NOW - timedelta(days=29)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "CHUNK", 3)


def _prune(tenant: Tenant, **options: Any) -> list[retention.Pruned]:
    return list(retention.prune(tenant.pk, **options))


def _assert_whole(tenant: Tenant) -> None:
    floor, head, positions, bodies = remaining(tenant.pk)
    assert positions == list(range(floor + 1, head + 1))
    assert bodies == len(positions)


def test_events_beyond_the_retention_are_pruned_with_their_bodies(tenant: Tenant, small_chunks: None) -> None:
    fill_log(tenant.pk, 8, recorded_at=OLD)
    fill_log(tenant.pk, 4, recorded_at=FRESH)

    assert [(done.count, done.held_back) for done in _prune(tenant)] == [(8, 0)]

    assert remaining(tenant.pk) == (8, 12, [9, 10, 11, 12], 4)
    assert Head.objects.get(pk=tenant.pk).floor_recorded_at == OLD
    assert _prune(tenant) == []


def test_the_search_for_expired_positions_reads_only_expired_positions(tenant: Tenant) -> None:
    fill_log(tenant.pk, 5, recorded_at=OLD)
    fill_log(tenant.pk, 300, recorded_at=FRESH)

    values = {"tenant": tenant.pk, "now": NOW, "day": 86400.0, "default": 30 * 86400.0}
    assert read_in_vain(retention._DUE, values, table="events_logentry") == 0


def test_a_tenant_may_have_a_longer_or_shorter_retention_than_the_platform(tenant: Tenant) -> None:
    fill_log(tenant.pk, 2, recorded_at=OLD)
    fill_log(tenant.pk, 2, recorded_at=FRESH)
    Tenant.objects.filter(pk=tenant.pk).update(event_retention_days=32)
    assert _prune(tenant) == []
    Tenant.objects.filter(pk=tenant.pk).update(event_retention_days=28)
    assert [done.count for done in _prune(tenant)] == [4]


def test_the_schedule_prunes_every_tenant(tenant: Tenant) -> None:
    other = TenantFactory.create(id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    for each in (tenant, other):
        fill_log(each.pk, 2, recorded_at=OLD)
    tasks.prune()
    assert remaining(tenant.pk)[0] == remaining(other.pk)[0] == 2


def test_a_wrong_clock_prunes_no_event_early(tenant: Tenant) -> None:
    fill_log(tenant.pk, 2, recorded_at=FRESH)
    for wrong in (NOW + timedelta(days=400), NOW - timedelta(days=400)):
        assert retention.due_logs(tenant.pk, now=wrong) == []


def test_events_recorded_with_a_fast_clock_delay_the_pruning_of_later_events(tenant: Tenant, database_connection: Connection) -> None:
    """The clock was two days ahead and was then corrected.

    Nevertheless, recording times never decrease: later events get the time of the earlier ones.
    """
    ahead = datetime.now(UTC) + timedelta(days=2)
    fill_log(tenant.pk, 1, recorded_at=ahead)
    UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test")
    number_tenant(tenant.pk)
    with connection.cursor() as cursor:
        cursor.execute("SELECT array_agg(recorded_at ORDER BY position) FROM events_logentry WHERE tenant_id = %s", [tenant.pk])
        times = cursor.fetchone()[0]
    assert times == sorted(times)
    assert times[-1] >= ahead
    Tenant.objects.filter(pk=tenant.pk).update(event_retention_days=1)
    assert _prune(tenant) == []


def test_the_cursor_of_an_idle_tenant_stays_valid_after_all_its_events_were_pruned(tenant: Tenant) -> None:
    head = fill_log(tenant.pk, 5, recorded_at=OLD)
    _prune(tenant)
    assert remaining(tenant.pk) == (5, 5, [], 0)

    assert _read(lambda log: log.page(tenant.pk, Cursor(1, head), max_events=9, max_bytes=9999)).events == []
    fill_log(tenant.pk, 1, recorded_at=NOW)
    assert [event.position for event in _read(lambda log: log.page(tenant.pk, Cursor(1, head), max_events=9, max_bytes=9999)).events] == [6]
    with pytest.raises(CursorExpired):
        _read(lambda log: log.page(tenant.pk, Cursor(1, head - 1), max_events=9, max_bytes=9999))


def test_a_reader_sees_floor_and_rows_from_one_snapshot_during_a_chunk(tenant: Tenant) -> None:
    fill_log(tenant.pk, 4, recorded_at=OLD)

    def seen() -> tuple[int, list[int]]:
        page = _read(lambda log: log.page(tenant.pk, Cursor(1, 0), max_events=9, max_bytes=9999))
        return page.bounds.floor, [event.position for event in page.events]

    with open_connection() as old_snapshot, open_connection() as blocker:
        old_snapshot.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        look = (
            "SELECT floor, (SELECT count(*) FROM events_logentry l WHERE l.tenant_id = h.tenant_id) FROM events_head h WHERE tenant_id = %s"
        )
        with old_snapshot.transaction():
            assert old_snapshot.execute(look, [tenant.pk]).fetchone() == (0, 4)
            with blocker.transaction():
                # The chunk has deleted its rows and waits for the head row. Readers still see the rows.
                blocker.execute("SELECT 1 FROM events_head WHERE tenant_id = %s FOR UPDATE", [tenant.pk])
                pruner = _in_thread(lambda: _prune(tenant))
                eventually(lambda: _somebody_waits_for_a_lock())
                assert seen() == (0, [1, 2, 3, 4])
            pruner.join(10)
            assert old_snapshot.execute(look, [tenant.pk]).fetchone() == (0, 4)
    with pytest.raises(CursorExpired):
        seen()
    assert remaining(tenant.pk) == (4, 4, [], 0)


@pytest.mark.parametrize("pages_before", range(5))
@pytest.mark.parametrize("pruned_through", range(1, 13))
def test_a_reader_during_pruning_gets_every_event_or_410(
    tenant: Tenant, small_chunks: None, pages_before: int, pruned_through: int
) -> None:
    fill_log(tenant.pk, 12, recorded_at=OLD)

    async def replay(log: LogReader) -> list[int] | None:
        positions: list[int] = []
        for number in range(5):
            if number == pages_before:
                await asyncio.to_thread(_pruned_in_thread, tenant, pruned_through)
            try:
                page = await log.page(tenant.pk, Cursor(1, len(positions)), max_events=3, max_bytes=9999)
            except CursorExpired:
                assert positions == list(range(1, len(positions) + 1))
                assert len(positions) < pruned_through, "410, although every event after the cursor was still in the log"
                return None
            positions += [event.position for event in page.events]
        return positions

    positions = _read(replay)
    assert positions is None or positions == list(range(1, 13))
    assert (positions is None) == (pages_before * 3 < pruned_through)


def test_readers_during_pruning_never_find_a_missing_position(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "CHUNK", 2)
    fill_log(tenant.pk, 600, recorded_at=OLD)
    ends: list[int] = []

    async def read(log: LogReader) -> None:
        pruning = asyncio.create_task(asyncio.to_thread(_pruned_in_thread, tenant, 600))
        while not pruning.done():
            start = position = remaining_floor = (await log.bounds(tenant.pk)).floor
            try:
                while position < 600:
                    page = await log.page(tenant.pk, Cursor(1, position), max_events=random.randint(1, 7), max_bytes=9999)
                    # `LogReader.page` raises `LogHasHole` for a missing position. The test also checks the positions itself.
                    assert [event.position for event in page.events] == list(range(position + 1, position + 1 + len(page.events)))
                    position += len(page.events)
            except CursorExpired:
                assert (await log.bounds(tenant.pk)).floor > position >= start >= remaining_floor
            ends.append(position)
        await pruning

    _read(read)
    assert len(ends) > 5
    _assert_whole(tenant)


def test_pruning_causes_no_deadlock_with_writers_or_numbering_or_a_second_run(
    tenant: Tenant, database_connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "CHUNK", 50)
    fill_log(tenant.pk, 4000, recorded_at=OLD)
    stop = threading.Event()

    def write(number: int) -> None:
        for turn in range(25):
            UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email=f"u{number}-{turn}@example.test")

    def number() -> None:
        while not stop.is_set():
            number_tenant(tenant.pk)

    failures: list[BaseException] = []
    writers = [_in_thread(partial(write, n), failures) for n in range(4)]
    others = [_in_thread(number, failures)]
    pruners = [_in_thread(lambda: _prune(tenant), failures) for _ in range(2)]
    for thread in (*writers, *pruners):
        thread.join(60)
    stop.set()
    others[0].join(10)
    _prune(tenant)
    number_tenant(tenant.pk)

    assert failures == []
    assert remaining(tenant.pk)[:2] == (4000, 4101)
    _assert_whole(tenant)


def test_a_second_run_skips_a_log_that_is_being_pruned(tenant: Tenant) -> None:
    fill_log(tenant.pk, 3, recorded_at=OLD)
    with open_connection() as other, other.transaction():
        other.execute(retention._LOCK, {"class": retention._ADVISORY_CLASS, "tenant": tenant.pk})
        assert [(done.count, done.is_busy) for done in _prune(tenant)] == [(0, True)]
    assert [(done.count, done.is_busy) for done in _prune(tenant)] == [(3, False)]


def test_a_run_killed_during_a_chunk_leaves_a_consistent_log_for_the_next_run(tenant: Tenant) -> None:
    fill_log(tenant.pk, 12_000, recorded_at=OLD)
    with open_connection() as blocker:
        with blocker.transaction():
            # The third chunk waits here, so the process is killed during that chunk.
            blocker.execute("SELECT 1 FROM events_logentry WHERE tenant_id = %s AND position = 11000 FOR UPDATE", [tenant.pk])
            process = _prune_process(tenant)
            try:
                eventually(lambda: remaining(tenant.pk)[0] == 2 * retention.CHUNK, seconds=30)
            finally:
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
        eventually(lambda: not _somebody_waits_for_a_lock())
    assert remaining(tenant.pk)[0] == 2 * retention.CHUNK
    _assert_whole(tenant)

    assert [done.count for done in _prune(tenant)] == [2000]
    assert remaining(tenant.pk) == (12_000, 12_000, [], 0)


def test_a_dry_run_counts_events_and_deletes_no_event(tenant: Tenant) -> None:
    fill_log(tenant.pk, 5, recorded_at=OLD)
    out = StringIO()
    call_command("events", "prune", "--tenant", tenant.pk, "--dry-run", stdout=out)
    assert f"{tenant.pk}: would prune 5 positions" in out.getvalue()
    assert remaining(tenant.pk) == (0, 5, [1, 2, 3, 4, 5], 5)


def test_the_command_reports_counts_and_rate(tenant: Tenant) -> None:
    fill_log(tenant.pk, 5, recorded_at=OLD)
    out = StringIO()
    call_command("events", "prune", "--tenant", tenant.pk, stdout=out)
    assert f"{tenant.pk}: pruned 5 positions" in out.getvalue()
    assert "pruned 5 positions in" in out.getvalue()
    assert "; logs: 1; held back: 0" in out.getvalue()


def test_the_command_refuses_a_tenant_without_a_log(committed_db: None) -> None:
    with pytest.raises(CommandError, match="Tenant nobody has no log"):
        call_command("events", "prune", "--tenant", "nobody")


def _read(question: Callable[[LogReader], Any]) -> Any:
    async def asked() -> Any:
        pool = read_pool()
        await pool.open()
        try:
            return await question(LogReader(pool))
        finally:
            await pool.close()

    return asyncio.run(asked())


def _pruned_in_thread(tenant: Tenant, through: int) -> None:
    try:
        prune_log(DueLog(tenant.pk, 0, through))
    finally:
        connections.close_all()


def _in_thread(work: Callable[[], Any], failures: list[BaseException] | None = None) -> threading.Thread:
    def run() -> None:
        try:
            work()
        except BaseException as error:
            if failures is None:
                raise
            failures.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])


def _prune_process(tenant: Tenant) -> subprocess.Popen[str]:
    environment = {**os.environ, "DATABASE_URL": worker.url_of_test_database()}
    return subprocess.Popen(
        [sys.executable, "manage.py", "events", "prune", "--tenant", tenant.pk], env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.fixture(autouse=True)
def no_open_threads() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert [thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("Thread-")] == []
