"""Starting logs over after a restore. Cursors from before the restore are refused, and new cursors are valid."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from io import StringIO
from typing import TypeVar

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from events.log import restoring
from events.log.cursor import Cursor
from events.log.reading import CursorExpired, LogReader, read_pool
from events.models import Head, LogEntry
from identity.models import Tenant
from tests.events.long_logs import fill_log
from tests.faults import worker

Answer = TypeVar("Answer")
NOW = datetime.now(UTC)


def _ask(question: Callable[[LogReader], Awaitable[Answer]]) -> Answer:
    async def asked() -> Answer:
        pool = read_pool()
        await pool.open()
        try:
            return await question(LogReader(pool))
        finally:
            await pool.close()

    return asyncio.run(asked())


def _positions_after(tenant: Tenant, cursor: Cursor) -> list[int]:
    page = _ask(lambda log: log.page(tenant.pk, cursor, max_events=99, max_bytes=99_999))
    return [event.position for event in page.events]


def _restore(tenant: Tenant, backup: Head) -> None:
    """Reset the log to the state of a backup: delete later events, and restore the position and the epoch of the head."""
    LogEntry.objects.filter(tenant_id=tenant.pk, position__gt=backup.position).delete()
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM events_event e WHERE tenant_id = %s AND NOT EXISTS (SELECT 1 FROM events_logentry l WHERE l.event_id = e.id)",
            [tenant.pk],
        )
    Head.objects.filter(pk=tenant.pk).update(position=backup.position, epoch=backup.epoch, recorded_at=backup.recorded_at)


def test_cursors_from_before_the_restore_are_refused_and_new_cursors_are_valid(tenant: Tenant) -> None:
    fill_log(tenant.pk, 4, recorded_at=NOW)
    backup = Head.objects.get(pk=tenant.pk)
    fill_log(tenant.pk, 3, recorded_at=NOW)
    _restore(tenant, backup)

    call_command("events", "restored", "--tenant", tenant.pk, "--yes", stdout=StringIO())
    # New events fill the lost positions before a client with a cursor at a lost position reconnects. Only the epoch shows that the cursor
    # is old.
    fill_log(tenant.pk, 5, recorded_at=NOW)

    for position in (0, 3, 4, 7):
        with pytest.raises(CursorExpired):
            _positions_after(tenant, Cursor(1, position))
    new = Head.objects.get(pk=tenant.pk).epoch
    assert _positions_after(tenant, Cursor(new, 4)) == [5, 6, 7, 8, 9]


def test_an_old_cursor_would_silently_miss_events_if_the_command_did_not_run(tenant: Tenant) -> None:
    """Show why the command exists: the cursor does not show that position 7 was a different event before the restore."""
    fill_log(tenant.pk, 4, recorded_at=NOW)
    backup = Head.objects.get(pk=tenant.pk)
    fill_log(tenant.pk, 3, recorded_at=NOW)
    _restore(tenant, backup)
    fill_log(tenant.pk, 5, recorded_at=NOW)
    assert _positions_after(tenant, Cursor(1, 7)) == [8, 9]


def test_restoring_a_backup_twice_begins_two_epochs(tenant: Tenant) -> None:
    fill_log(tenant.pk, 2, recorded_at=NOW)
    backup = Head.objects.get(pk=tenant.pk)
    first = restoring.start_over(tenant.pk)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(1.0)")
    _restore(tenant, backup)
    second = restoring.start_over(tenant.pk)
    assert first is not None
    assert second is not None
    assert 1 < first < second


def test_the_command_shows_counts_and_changes_nothing_without_confirmation(tenant: Tenant) -> None:
    fill_log(tenant.pk, 3, recorded_at=NOW)
    environment = {**os.environ, "DATABASE_URL": worker.url_of_test_database()}
    asked = [sys.executable, "manage.py", "events", "restored", "--tenant", tenant.pk]
    for answer in ("", "no\n"):
        refused = subprocess.run(asked, env=environment, input=answer, capture_output=True, text=True, check=False)
        assert refused.returncode == 1
        assert f"{tenant.pk}: 3 events up to position 3" in refused.stdout
        assert "Logs that begin a new epoch: 1. From then on, each request with an earlier cursor gets 410" in refused.stdout
        assert "Nothing was changed." in refused.stderr
    assert Head.objects.get(pk=tenant.pk).epoch == 1

    agreed = subprocess.run(asked, env=environment, input="yes\n", capture_output=True, text=True, check=False)
    assert agreed.returncode == 0, agreed.stderr
    assert Head.objects.get(pk=tenant.pk).epoch > 1


@pytest.mark.parametrize("damage", ["UPDATE events_head SET position = 9", "DELETE FROM events_logentry"])
def test_a_log_whose_head_and_entries_disagree_is_refused(tenant: Tenant, damage: str) -> None:
    fill_log(tenant.pk, 3, recorded_at=NOW)
    with connection.cursor() as cursor:
        cursor.execute(f"{damage} WHERE tenant_id = %s", [tenant.pk])
    with pytest.raises(CommandError, match=f"not from the same point in time: {tenant.pk}"):
        call_command("events", "restored", "--tenant", tenant.pk, "--yes")
    assert Head.objects.get(pk=tenant.pk).epoch == 1


def test_the_command_refuses_a_tenant_without_a_log(committed_db: None) -> None:
    with pytest.raises(CommandError, match="Tenant nobody has no log"):
        call_command("events", "restored", "--tenant", "nobody", "--yes")


def test_a_tenant_without_a_log_is_not_started_over(committed_db: None) -> None:
    assert restoring.start_over("nobody") is None
