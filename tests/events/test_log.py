"""Reading the log: pages, bounds and times, each from one snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import psycopg
import pytest
from django.db import connection

from events.log.cursor import Cursor
from events.log.reading import Bounds, CursorExpired, LogHasHole, LogReader, NoLog, Page, read_pool
from events.models import Event, Head, LogEntry
from identity.models import Tenant
from tests.factories.admin import new_tenant
from tests.factories.models.events import EventFactory, LogEntryFactory

Answer = TypeVar("Answer")
START = datetime(2026, 1, 1, tzinfo=UTC)


def _ask(question: Callable[[LogReader], Awaitable[Answer]]) -> Answer:
    async def asked() -> Answer:
        pool = read_pool()
        await pool.open()
        try:
            return await question(LogReader(pool))
        finally:
            await pool.close()

    return asyncio.run(asked())


def _page(tenant: Tenant, after: int, *, epoch: int = 1, max_events: int = 100, max_bytes: int = 10_000) -> Page:
    return _ask(lambda log: log.page(tenant.pk, Cursor(epoch, after), max_events=max_events, max_bytes=max_bytes))


def _start_at(tenant: Tenant, minutes: float) -> Cursor:
    return _ask(lambda log: log.start_at(tenant.pk, START + timedelta(minutes=minutes)))[1]


def _filled(tenant: Tenant, count: int, *, size: int = 10) -> None:
    """Write a log of `count` events with one minute between them."""
    for position in range(1, count + 1):
        event = EventFactory.create(tenant_id=tenant.pk, type="user.updated", body=b"x" * size)
        LogEntryFactory.create(event=event, position=position, recorded_at=START + timedelta(minutes=position))
    Head.objects.filter(pk=tenant.pk).update(position=count, recorded_at=START + timedelta(minutes=count))


def _pruned(tenant: Tenant, floor: int) -> None:
    LogEntry.objects.filter(tenant_id=tenant.pk, position__lte=floor).delete()
    Head.objects.filter(pk=tenant.pk).update(floor=floor, floor_recorded_at=START + timedelta(minutes=floor))


def _positions(page: Page) -> list[int]:
    return [event.position for event in page.events]


def test_a_page_starts_after_the_cursor_and_contains_the_bounds_of_the_log(tenant: Tenant) -> None:
    _filled(tenant, 5)
    page = _page(tenant, 2)
    assert _positions(page) == [3, 4, 5]
    assert (page.bounds.head, page.bounds.floor, page.bounds.epoch) == (5, 0, 1)
    assert page.events[0].body == b"x" * 10
    assert _positions(_page(tenant, 5)) == []


def test_a_page_has_a_limit_of_events_and_of_bytes_but_is_never_empty(tenant: Tenant) -> None:
    _filled(tenant, 6, size=1000)
    assert _positions(_page(tenant, 0, max_events=2)) == [1, 2]
    assert _positions(_page(tenant, 0, max_bytes=2500)) == [1, 2, 3]
    assert _positions(_page(tenant, 3, max_bytes=1)) == [4]


def test_a_failure_for_one_tenant_leaves_the_pages_of_other_tenants_unchanged(tenant: Tenant) -> None:
    other, pruned, gone = new_tenant(), new_tenant(), new_tenant()
    for filled in (tenant, other, pruned):
        _filled(filled, 4)
    _pruned(pruned, 2)
    Head.objects.filter(pk=gone.pk).delete()
    places = [
        (other.pk, Cursor(1, 3)),
        (gone.pk, Cursor(1, 0)),
        (tenant.pk, Cursor(1, 1)),
        (pruned.pk, Cursor(1, 1)),
        (tenant.pk, Cursor(1, 4)),
    ]
    found = _ask(lambda log: log.pages(places, max_events=2, max_bytes=10_000))
    assert [type(page) for page in found] == [Page, NoLog, Page, CursorExpired, Page]
    assert [_positions(page) for page in found if isinstance(page, Page)] == [[4], [2, 3], []]
    assert [page.bounds.head for page in found if isinstance(page, Page)] == [4, 4, 4]


def test_reading_one_tenant_gives_the_same_result_as_reading_several_tenants(tenant: Tenant) -> None:
    _filled(tenant, 3)
    (page,) = _ask(lambda log: log.pages([(tenant.pk, Cursor(1, 1))], max_events=9, max_bytes=10_000))
    assert isinstance(page, Page)
    assert _positions(page) == [2, 3]
    (expired,) = _ask(lambda log: log.pages([(tenant.pk, Cursor(1, 4))], max_events=9, max_bytes=10_000))
    assert isinstance(expired, CursorExpired)


@pytest.mark.parametrize("cursor", [Cursor(1, 0), Cursor(1, 1), Cursor(2, 3), Cursor(0, 3), Cursor(1, 6)])
def test_a_cursor_outside_the_bounds_or_of_another_epoch_has_expired(tenant: Tenant, cursor: Cursor) -> None:
    _filled(tenant, 5)
    _pruned(tenant, 2)
    with pytest.raises(CursorExpired):
        _page(tenant, cursor.position, epoch=cursor.epoch)
    assert _positions(_page(tenant, 2)) == [3, 4, 5]


def test_a_cursor_at_the_floor_of_an_idle_log_stays_valid_forever(tenant: Tenant) -> None:
    _filled(tenant, 3)
    _pruned(tenant, 3)
    assert _positions(_page(tenant, 3)) == []


@pytest.mark.parametrize("missing", [1, 3, 5])
@pytest.mark.parametrize("table", [LogEntry, Event])
def test_reading_returns_the_events_before_a_missing_position_and_then_raises_an_error(
    tenant: Tenant, missing: int, table: type[LogEntry] | type[Event]
) -> None:
    _filled(tenant, 5)
    entry = LogEntry.objects.filter(tenant_id=tenant.pk, position=missing)
    # An entry without its event is also a missing position. No foreign key connects the two tables.
    (entry if table is LogEntry else Event.objects.filter(pk__in=list(entry.values_list("event_id", flat=True)))).delete()
    if missing > 1:
        assert _positions(_page(tenant, 0)) == list(range(1, missing))
    with pytest.raises(LogHasHole) as hole:
        _page(tenant, missing - 1)
    assert hole.value.after == missing
    assert _positions(_page(tenant, missing)) == list(range(missing + 1, 6))


def test_a_tenant_without_a_head_has_no_log(tenant: Tenant) -> None:
    Head.objects.filter(pk=tenant.pk).delete()
    with pytest.raises(NoLog):
        _page(tenant, 0)
    with pytest.raises(NoLog):
        _ask(lambda log: log.bounds(tenant.pk))


def test_concurrent_queries_for_bounds_get_their_own_answers(tenant: Tenant) -> None:
    other_tenant = new_tenant()
    _filled(tenant, 3)
    asked = [tenant.pk, 'of "nobody", \\{}', other_tenant.pk, tenant.pk]

    async def told(log: LogReader) -> list[Bounds | BaseException]:
        return await asyncio.gather(*map(log.bounds, asked), return_exceptions=True)

    found = _ask(told)
    assert [answer.head if isinstance(answer, Bounds) else type(answer) for answer in found] == [3, NoLog, 0, 3]


@pytest.mark.parametrize(("minutes", "position"), [(-600, 0), (0, 0), (1, 0), (1.5, 1), (3, 2), (5, 4), (5.1, 5), (9999, 5)])
def test_the_cursor_for_a_time_is_before_the_first_event_that_is_not_older(tenant: Tenant, minutes: float, position: int) -> None:
    _filled(tenant, 5)
    assert _start_at(tenant, minutes) == Cursor(1, position)


def test_a_cursor_for_a_time_starts_before_all_events_of_that_time(tenant: Tenant) -> None:
    _filled(tenant, 4)
    LogEntry.objects.filter(tenant_id=tenant.pk, position__in=[2, 3]).update(recorded_at=START + timedelta(minutes=2))
    assert _start_at(tenant, 2) == Cursor(1, 1)


def test_a_time_has_expired_only_if_an_event_from_this_time_on_was_pruned(tenant: Tenant) -> None:
    _filled(tenant, 5)
    _pruned(tenant, 3)
    for gone in (-600, 3):
        with pytest.raises(CursorExpired):
            _start_at(tenant, gone)
    assert _start_at(tenant, 3.5) == Cursor(1, 3)


def test_a_completely_pruned_log_starts_at_the_floor(tenant: Tenant) -> None:
    _filled(tenant, 3)
    _pruned(tenant, 3)
    assert _start_at(tenant, 4) == Cursor(1, 3)


def test_concurrent_readers_raise_the_epoch_once(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    _filled(tenant, 2)
    seen = Cursor(1, 9)

    async def twice(log: LogReader) -> list[bool]:
        return list(await asyncio.gather(*(log.raise_epoch(tenant.pk, seen) for _ in range(4))))

    assert sorted(_ask(twice)) == [False, False, False, True]
    epoch = Head.objects.get(pk=tenant.pk).epoch
    assert epoch > 1
    assert _ask(lambda log: log.raise_epoch(tenant.pk, Cursor(epoch, 2))) is False
    assert caplog.text.count(f"the log of {tenant.pk} was restored to an earlier state") == 1


def test_reading_the_heads_of_several_logs_leaves_out_deleted_tenants(tenant: Tenant) -> None:
    _filled(tenant, 2)
    assert _ask(lambda log: log.heads([tenant.pk, "nobody"])) == {tenant.pk: Cursor(1, 2)}


def test_a_cursor_after_the_head_proves_a_loss_only_in_its_own_epoch() -> None:
    bounds = Bounds(epoch=2, head=9, floor=4, floor_recorded_at=None, stream_id="est_x")
    assert bounds.end == Cursor(2, 9)
    assert bounds.refutes(Cursor(2, 10))
    assert not bounds.refutes(Cursor(1, 10))
    assert not bounds.refutes(Cursor(2, 9))


def test_a_reader_at_the_head_does_not_raise_the_epoch(tenant: Tenant) -> None:
    _filled(tenant, 2)
    assert _ask(lambda log: log.raise_epoch(tenant.pk, Cursor(1, 2))) is False
    assert Head.objects.get(pk=tenant.pk).epoch == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NoLog(), "The tenant has no log: it was deleted."),
        (LogHasHole(4), "Positions between floor and head are missing. `after` is the last missing position."),
    ],
)
def test_each_error_of_the_log_has_an_explanation(error: Exception, text: str) -> None:
    assert str(error) == text


def test_the_pool_of_readers_gets_no_option_that_only_django_supports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "pool", {"min_size": 1})
    pool = read_pool()
    assert isinstance(pool.kwargs, dict)
    assert {"pool", "cursor_factory", "context"} & pool.kwargs.keys() == set()
    assert (pool.kwargs["autocommit"], pool.kwargs["prepare_threshold"], pool.name) == (True, 2, "log")


def test_reads_of_the_log_always_use_generic_plans(tenant: Tenant) -> None:
    assert _ask(lambda log: log._rows("SHOW plan_cache_mode", {})) == [("force_generic_plan",)]


def test_a_broken_connection_is_replaced(tenant: Tenant) -> None:
    async def survive(log: LogReader) -> int:
        with pytest.raises(psycopg.OperationalError):
            await log._rows("SELECT pg_terminate_backend(pg_backend_pid())", {})
        return (await log.bounds(tenant.pk)).head

    assert _ask(survive) == 0
