"""The check of timelines before numbering: a promotion that may have lost numbered events raises the epoch before the next position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from events.log import timelines
from events.log.numbering import number_batch, open_connection
from events.log.server_identity import Identity, identity_of
from events.models import Head, Timeline
from identity.models import Connection, Tenant
from identity.services import users

LATER = 10


@pytest.fixture
def database(committed_db: None) -> Iterator[psycopg.Connection[Any]]:
    with open_connection() as opened:
        yield opened


@pytest.fixture
def promoted(database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Identity]:
    """The identity that the server reports in this test: timeline 10 of a cluster of which no timeline is stored."""
    shown = Identity("1", LATER)
    monkeypatch.setattr(timelines, "identity_of", lambda _: shown)
    yield shown
    Timeline.objects.filter(system_identifier="1").delete()


def note(timeline: int, *, is_replicated: bool) -> None:
    Timeline.objects.create(system_identifier="1", timeline=timeline, is_replicated=is_replicated)


def epoch_after_numbering(
    tenant: Tenant, connection: Connection, database: psycopg.Connection[Any], *, earlier: int | None
) -> tuple[int, int]:
    """Number a new event of a log that was last numbered on the timeline `earlier`. Return the epochs before and after the numbering."""
    Head.objects.filter(pk=tenant.pk).update(timeline=earlier)
    before = Head.objects.get(pk=tenant.pk).epoch
    users.create_user(tenant_id=tenant.pk, connection=connection, name=f"user{earlier}")
    assert number_batch(database, tenant.pk) is not None
    head = Head.objects.get(pk=tenant.pk)
    assert head.timeline == LATER
    return before, head.epoch


def test_a_promotion_without_synchronous_replication_raises_the_epoch(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection[Any], promoted: Identity
) -> None:
    note(LATER - 1, is_replicated=False)

    before, after = epoch_after_numbering(tenant, database_connection, database, earlier=LATER - 1)

    assert after > before


def test_a_promotion_of_a_synchronous_standby_keeps_the_epoch(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection[Any], promoted: Identity
) -> None:
    note(LATER - 1, is_replicated=True)

    before, after = epoch_after_numbering(tenant, database_connection, database, earlier=LATER - 1)

    assert after == before


def test_one_timeline_without_replication_between_two_replicated_timelines_raises_the_epoch(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection[Any], promoted: Identity
) -> None:
    note(LATER - 3, is_replicated=True)
    note(LATER - 1, is_replicated=True)

    before, after = epoch_after_numbering(tenant, database_connection, database, earlier=LATER - 3)

    assert after > before


def test_a_point_in_time_recovery_raises_the_epoch_although_commits_were_replicated(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection[Any], promoted: Identity
) -> None:
    note(LATER - 1, is_replicated=True)
    fence = timelines.fence_of(database)
    assert fence is not None
    fence.is_recovered_to_a_point = True

    before, after = epoch_after_numbering(tenant, database_connection, database, earlier=LATER - 1)

    assert after > before


@pytest.mark.parametrize("earlier", [None, LATER - 1], ids=["a log without a timeline", "a timeline of another cluster"])
def test_a_log_without_a_known_timeline_keeps_its_epoch(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection[Any], promoted: Identity, earlier: int | None
) -> None:
    before, after = epoch_after_numbering(tenant, database_connection, database, earlier=earlier)

    assert after == before


def test_the_second_numbering_on_a_timeline_keeps_the_epoch(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection[Any], promoted: Identity
) -> None:
    note(LATER - 1, is_replicated=False)
    _, raised = epoch_after_numbering(tenant, database_connection, database, earlier=LATER - 1)

    users.create_user(tenant_id=tenant.pk, connection=database_connection, name="next")
    number_batch(database, tenant.pk)

    assert Head.objects.get(pk=tenant.pk).epoch == raised


def test_if_the_operator_confirms_that_nothing_was_lost_the_epochs_stay(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection[Any], promoted: Identity
) -> None:
    note(LATER - 1, is_replicated=False)
    Head.objects.filter(pk=tenant.pk).update(timeline=LATER - 1)
    before = Head.objects.get(pk=tenant.pk).epoch

    timelines.confirm(database, promoted)
    users.create_user(tenant_id=tenant.pk, connection=database_connection, name="next")
    number_batch(database, tenant.pk)

    assert Head.objects.get(pk=tenant.pk).epoch == before
    Head.objects.update(timeline=identity_of(database).timeline)


def test_a_timeline_of_a_server_without_standby_is_stored_as_not_replicated(database: psycopg.Connection[Any]) -> None:
    fence = timelines.fence_of(database)

    assert fence is not None
    assert fence.is_replicated is False
    assert Timeline.objects.get(system_identifier=fence.identity.system_identifier, timeline=fence.identity.timeline).is_replicated is False


def test_events_are_numbered_although_the_role_may_not_read_the_identity_of_the_server(
    tenant: Tenant, database_connection: Connection, database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> Identity:
        raise psycopg.errors.InsufficientPrivilege

    monkeypatch.setattr(timelines, "identity_of", refuse)
    batch = number_batch(database, tenant.pk)
    assert batch is not None
    assert batch.count == 1


def test_the_end_of_replication_is_stored_after_the_numbering_is_committed(
    tenant: Tenant, database: psycopg.Connection[Any], promoted: Identity
) -> None:
    fence = timelines.fence_of(database)
    assert fence is not None
    fence.is_replicated = True
    Timeline.objects.filter(system_identifier="1", timeline=LATER).update(is_replicated=True)

    assert number_batch(database, tenant.pk) is not None

    assert fence.is_replicated is False
    assert Timeline.objects.get(system_identifier="1", timeline=LATER).is_replicated is False


def test_a_stronger_synchronous_commit_setting_of_the_operator_is_kept(database: psycopg.Connection[Any]) -> None:
    for stored, used in (("remote_apply", "remote_apply"), ("on", "on"), ("remote_write", "on"), ("local", "on"), ("off", "on")):
        database.execute(f"SET synchronous_commit = {stored}")
        with database.transaction():
            database.execute(timelines.DURABLE_COMMIT)
            assert database.execute("SHOW synchronous_commit").fetchone() == (used,)
