"""Positions compared with commit order and the clock. The tests also prove that simpler cursors would fail."""

from __future__ import annotations

import threading
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psycopg
import pytest

from config.launcher import postgres
from tests.conformance.reader import Subscriber
from tests.deadlines import eventually
from tests.faults.following import Follower, Following
from tests.faults.invariants import assert_holds
from tests.faults.world import Seeded, World

pytestmark = pytest.mark.fault

_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


class _ReaderById(threading.Thread):
    """A consumer that queries rows after the highest id it has seen, as in a log without positions."""

    def __init__(self, world: World, tenant: Seeded) -> None:
        super().__init__(daemon=True)
        self.seen: list[str] = []
        self.stopping = False
        self._url = postgres.url_of(world.directory)
        self._tenant = tenant

    def run(self) -> None:
        last = 0
        with closing(psycopg.connect(self._url, autocommit=True)) as connection:
            while not self.stopping:
                statement = b"SELECT id, event_id FROM events_event WHERE tenant_id = %s AND id > %s ORDER BY id"
                for row_id, event_id in connection.execute(statement, [self._tenant.id, last]).fetchall():
                    last = row_id
                    self.seen.append(event_id)


def test_slow_transactions_reorder_row_ids_but_never_positions(world: World, following: Following) -> None:
    tenant = world.tenant()
    by_id = _ReaderById(world, tenant)
    with world.web() as web, world.writers(tenant, 4, count=40, think=0.02) as writers:
        by_id.start()
        try:
            following.add(Follower("live", tenant, lambda: web.address))
            writers.wait()
            eventually(lambda: world.is_numbered(tenant))
            following.all_at(world.head(tenant))
            following.stop()
        finally:
            by_id.stopping = True
            by_id.join()
    history = world.history(tenant, [writers], following.readers)
    assert_holds(history)
    # A consumer that follows row ids reads the same changes and never gets an event that committed late.
    logged = {entry.event["id"] for entry in history.log}
    assert len(logged - set(by_id.seen)) > 0, "the reader by row id missed no event, because no transaction overlapped another"


def test_reading_up_to_the_oldest_running_transaction_reorders_the_events_of_a_document(world: World, following: Following) -> None:
    """Transaction A gets the lower id. Transaction B changes a document and commits. Then A changes the same document.

    The change of A is the later change, but a reader in the order of transaction ids reads it first.
    """
    tenant = world.tenant()
    statement = b"UPDATE identity_user SET nickname = %s WHERE tenant_id = %s AND user_id = %s"
    url = postgres.url_of(world.directory)
    user = tenant.users[0]
    with closing(psycopg.connect(url)) as early, closing(psycopg.connect(url)) as late:
        ids = []
        early.execute("SELECT pg_current_xact_id()")
        for name, connection in (("late", late), ("early", early)):
            connection.execute(statement, [name, tenant.id, user])
            [(number,)] = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchall()
            ids.append((number, name))
            connection.commit()
    [(final,)] = world.query("SELECT nickname FROM identity_user WHERE tenant_id = %s AND user_id = %s", tenant.id, user)
    assert final == "early", "A wrote last"
    assert sorted(ids)[-1][1] == "late", "a reader in order of transaction ids reads the change of B last"


def test_recording_times_never_decrease_when_the_clock_is_changed(world: World) -> None:
    if not _FAKETIME.exists():
        pytest.skip("faketime is not installed, so no clock is set: make test-peers")
    tenant = world.tenant()
    setting = world.directory / "clock"
    setting.write_text("+0s")
    setting.chmod(0o644)
    fake = {
        "LD_PRELOAD": str(_FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(setting),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    world.restart_postgres(environment=fake)
    try:
        with world.writers(tenant, 1, think=0.0) as writers:
            # The clock of the server is ahead, then behind, then ahead again, and correct at the end.
            for step in ("+2h", "-3h", "+1h", "+0s"):
                setting.write_text(step)
                eventually(partial(writers.have_made, writers.count + 15), seconds=60)
            writers.stop()
            eventually(lambda: world.is_numbered(tenant))
    finally:
        world.restart_postgres()
    rows = world.query("SELECT recorded_at FROM events_logentry WHERE tenant_id = %s ORDER BY position", tenant.id)
    moments = [moment for (moment,) in rows]
    assert moments == sorted(moments)
    assert (moments[-1] - moments[0]).total_seconds() > 3600, "the clock was really set"
    _starts_skip_nothing(world, tenant, moments)


def _starts_skip_nothing(world: World, tenant: Seeded, moments: list[datetime]) -> None:
    with world.web() as web:
        for second in sorted({moment.astimezone(UTC).replace(microsecond=0) for moment in moments})[-6:]:
            wanted = sum(moment >= second for moment in moments)
            headers = {"Host": tenant.host, "Authorization": f"Bearer {tenant.token}"}
            stamp = second.strftime("%Y-%m-%dT%H:%M:%SZ")
            with Subscriber(web.address, headers=headers, query={"from_timestamp": stamp}) as stream:
                stream.opened()
                found = stream.events(wanted)
                assert tenant.opened(found[0].id or "").position == len(moments) - wanted + 1
