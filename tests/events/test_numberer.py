"""The thread that numbers the events of its process: how the thread ends, waits, handles failures, and notifies other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import pytest
from django.conf import settings as django_settings
from django.db import connection
from pytest_django.fixtures import Settings

from events.hints import HintListener
from events.log import numbering
from events.log.numbering import Numberer, open_connection
from events.log.server_identity import identity_of
from events.models import Outbox, Timeline
from identity.models import Connection, Tenant
from identity.services import users
from tests.deadlines import eventually

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def running() -> Iterator[Numberer]:
    numberer = Numberer()
    numberer.start()
    try:
        yield numberer
    finally:
        numberer.stop()


def has_waiting(tenant: Tenant) -> bool:
    return Outbox.objects.filter(tenant_id=tenant.pk).exists()


def test_a_numberer_numbers_every_batch_of_its_pending_tenants_before_it_stops(
    tenant: Tenant, database_connection: Connection, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbering, "BATCH", 5)
    # Number only the tenant of this test. Thousands of tenants of other tests have waiting events, and the numberer would take one batch
    # of each of them before the next batch of this tenant.
    monkeypatch.setattr(numbering, "waiting_tenants", lambda _database: [])
    for number in range(22):
        users.create_user(tenant_id=tenant.pk, connection=database_connection, name=f"user {number}")
    settings.EVENTS_NUMBERER_ENABLED = True
    numberer = Numberer()
    numberer.notify(tenant.pk)
    numberer.stop()
    assert not has_waiting(tenant)


def test_a_commit_wakes_an_idle_numberer_without_another_query_of_the_outbox(committed_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []
    monkeypatch.setattr(numbering, "waiting_tenants", _noting(turns, "query", numbering.waiting_tenants))
    monkeypatch.setattr(Numberer, "_number_pending", _noting(turns, "turn", Numberer._number_pending))
    with running() as numberer:
        eventually(lambda: turns.count("query") == 2)
        monkeypatch.setattr(numbering, "_IDLE_SECONDS", 3600.0)
        begin = list(turns)
        for _ in range(20):
            before = turns.count("turn")
            numberer._wake.set()
            _wait_for_more_than(before, turns)
        later = turns[len(begin) :]
    # Each wake causes at most one round of numbering ("turn"). Permit three more rounds: when the test set `_IDLE_SECONDS` to an hour, the
    # thread may have been in a round, or in a wait of the usual second.
    assert later.count("turn") <= 23
    assert later.count("query") <= 1


def test_a_numberer_whose_database_is_unavailable_tries_again(
    tenant: Tenant, database_connection: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as unreachable:
        unreachable.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        unreachable.setitem(connection.settings_dict, "PORT", "1")
        numberer = Numberer()
        numberer.start()
        eventually(lambda: caplog.text.count("numbering paused: OperationalError") >= 2)
    try:
        eventually(lambda: not has_waiting(tenant))
    finally:
        numberer.stop()


def test_a_numberer_whose_database_is_unavailable_can_be_stopped_while_events_wait(
    tenant: Tenant, database_connection: Connection, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    settings.EVENTS_NUMBERER_ENABLED = True
    numberer = Numberer()
    numberer.notify(tenant.pk)
    thread = numberer._thread
    assert thread is not None
    # A process that ends does not wait for the thread.
    assert thread.daemon
    eventually(lambda: "numbering paused" in caplog.text)
    numberer.stop()
    assert not thread.is_alive()


def test_an_idle_numberer_records_that_commits_no_longer_wait_for_a_standby(committed_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "_REPLICATION_SECONDS", 0.0)
    with open_connection() as database:
        identity = identity_of(database)
    own = Timeline.objects.filter(system_identifier=identity.system_identifier, timeline=identity.timeline)
    with running():
        eventually(own.exists)
        own.update(is_replicated=True)
        eventually(lambda: not own.get().is_replicated)


def test_other_processes_get_a_hint_with_the_new_last_position_of_the_log(tenant: Tenant, database_connection: Connection) -> None:
    async def story() -> tuple[str, int]:
        connected, heard = asyncio.Event(), asyncio.Queue[tuple[str, int]]()
        listener = HintListener(django_settings.REDIS_URL, heard=lambda *hint: heard.put_nowait(hint), connected=connected.set)
        listening = asyncio.create_task(listener.run())
        async with asyncio.timeout(60):
            await connected.wait()
            position = 0
            with running():
                while heard.empty():
                    # Redis confirms a subscription after the call returns, so the first hints may be lost.
                    position += 1
                    await asyncio.to_thread(_change, tenant, database_connection, position)
                    await asyncio.sleep(0.05)
            hint = await heard.get()
            while hint[0] != tenant.pk:
                hint = await heard.get()
        listening.cancel()
        assert 1 <= hint[1] <= position + 1
        return hint

    assert asyncio.run(story())[0] == tenant.pk


def _noting(turns: list[str], word: str, call: Callable[P, R]) -> Callable[P, R]:
    """Return a function that adds the word to the list and calls `call`."""

    def noting(*arguments: P.args, **named: P.kwargs) -> R:
        turns.append(word)
        return call(*arguments, **named)

    return noting


def _wait_for_more_than(count: int, turns: list[str]) -> None:
    eventually(lambda: turns.count("turn") > count)


def _change(tenant: Tenant, database_connection: Connection, number: int) -> None:
    users.create_user(tenant_id=tenant.pk, connection=database_connection, name=f"user {number}")
    connection.close()
