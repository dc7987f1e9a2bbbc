"""Random sequences of recording, pruning and starting over. The log is compared with a model of three numbers: epoch, floor and head."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from events.log import restoring, retention
from events.log.cursor import Cursor
from events.log.reading import CursorExpired, LogReader, read_pool
from events.log.retention import DueLog, prune_log
from events.models import Head
from tests.depth import sized
from tests.events.long_logs import fill_log, remaining
from tests.factories.models.identity import TenantFactory

START = datetime.now(UTC) - timedelta(days=1)


class ShrinkingLog(RuleBasedStateMachine):
    """A log that grows, is pruned and starts over, and a client that keeps every cursor."""

    @initialize()
    def make_log(self) -> None:
        self.tenant_id = f"t-{secrets.token_hex(6)}"
        TenantFactory.create(id=self.tenant_id, name="x", host=f"{self.tenant_id}.example.test")
        self.floor = self.head = 0
        self.epoch = Head.objects.get(pk=self.tenant_id).epoch
        self.moment = START
        self.given = [Cursor(self.epoch, 0)]

    @rule(count=st.integers(1, 9))
    def record(self, count: int) -> None:
        self.moment += timedelta(seconds=1)
        self.head = fill_log(self.tenant_id, count, recorded_at=self.moment)
        self.given.append(Cursor(self.epoch, self.head))

    @rule(share=st.floats(0, 1))
    def prune(self, share: float) -> None:
        through = self.floor + round((self.head - self.floor) * share)
        assert prune_log(DueLog(self.tenant_id, self.floor, through)).count == through - self.floor
        self.floor = through

    @rule()
    def start_over(self) -> None:
        epoch = restoring.start_over(self.tenant_id)
        assert epoch is not None
        assert epoch > self.epoch
        self.epoch = epoch
        self.given.append(Cursor(self.epoch, self.head))

    @rule(data=st.data(), page=st.integers(1, 5))
    def read(self, data: st.DataObject, page: int) -> None:
        cursor = data.draw(st.sampled_from(self.given))
        is_served = cursor.epoch == self.epoch and cursor.position >= self.floor
        expected = list(range(cursor.position + 1, self.head + 1)) if is_served else None
        assert asyncio.run(_replayed(self.tenant_id, cursor, page)) == expected

    @invariant()
    def log_is_whole(self) -> None:
        if hasattr(self, "tenant_id"):
            positions = list(range(self.floor + 1, self.head + 1))
            assert remaining(self.tenant_id) == (self.floor, self.head, positions, len(positions))


async def _replayed(tenant_id: str, cursor: Cursor, max_events: int) -> list[int] | None:
    """Return every position after the cursor, page by page, or None if the cursor has expired."""
    pool = read_pool()
    await pool.open()
    log = LogReader(pool)
    found: list[int] = []
    try:
        while events := (await log.page(tenant_id, cursor, max_events=max_events, max_bytes=10_000)).events:
            found += [event.position for event in events]
            cursor = Cursor(cursor.epoch, events[-1].position)
    except CursorExpired:
        return None
    finally:
        await pool.close()
    return found


@pytest.mark.sized
def test_after_any_sequence_a_cursor_gets_every_later_event_or_is_refused(committed_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "CHUNK", 4)
    machine = settings(max_examples=sized(6, deep=30), stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(ShrinkingLog, settings=machine)
