"""A process that has read beyond the current end of the log detects that the database was restored to an earlier state."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection

from events.log.cursor import CursorSealer
from events.log.reading import LogReader, read_pool
from events.models import Head, LogEntry
from events.stream.reading.sharing import Batch
from events.stream.reading.tail import Tails
from events.stream.reasons import CURSOR_EXPIRED, Reason
from identity.models import Tenant
from tests.events.long_logs import fill_log


class Follower:
    """Records the reason for which it was closed."""

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.is_closed = asyncio.Event()

    def push(self, batch: Batch) -> None:
        """Ignore the frames."""

    def close(self, reason: Reason) -> None:
        self.reason = reason
        self.is_closed.set()


def _set_back(tenant: Tenant, position: int) -> None:
    # An earlier test may have closed the connection of this thread.
    connection.close()
    LogEntry.objects.filter(tenant_id=tenant.pk, position__gt=position).delete()
    Head.objects.filter(pk=tenant.pk).update(position=position)


async def _watch_while(tenant: Tenant, position: int | None) -> Reason | None:
    """Follow the log. If `position` is given, then set the log back to this position, as a restore would. Return why the stream was
    closed, or None if it is still open after two seconds."""
    pool = read_pool()
    await pool.open()
    log = LogReader(pool)
    tails = Tails(log, ring_bytes=1024 * 1024)
    follower = Follower()
    polling = asyncio.create_task(tails.poll())
    try:
        tails.follow(follower, tenant.pk, await log.bounds(tenant.pk), CursorSealer(settings.CURSOR_KEYS, tenant_id=tenant.pk))
        if position is not None:
            await sync_to_async(_set_back)(tenant, position)
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                await follower.is_closed.wait()
    finally:
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
        await pool.close()
    return follower.reason


def test_a_log_that_ends_before_a_read_position_gets_a_new_epoch(tenant: Tenant) -> None:
    fill_log(tenant.pk, 5, recorded_at=datetime.now(UTC))
    assert asyncio.run(_watch_while(tenant, 3)) == CURSOR_EXPIRED
    assert Head.objects.get(pk=tenant.pk).epoch > 1


def test_an_unchanged_log_keeps_its_epoch_and_its_streams(tenant: Tenant) -> None:
    fill_log(tenant.pk, 5, recorded_at=datetime.now(UTC))
    assert asyncio.run(_watch_while(tenant, None)) is None
    assert Head.objects.get(pk=tenant.pk).epoch == 1
