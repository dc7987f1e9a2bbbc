"""The metrics of each event stream, which have the id of the stream as a label."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.db import DataError, connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from events.models import EventStream
from foundation.database.statements import execute
from identity.models import Tenant
from provisioning.engine import delivering, dispatch, retention, stream_tallies
from provisioning.engine.sweeper import SweeperThread, take_lead
from provisioning.models import StreamTally
from provisioning.runs.failures import DataFailure, TransientFailure
from provisioning.stream_figures import STREAMS
from tests.deadlines import eventually
from tests.factories.models.provisioning import StreamTallyFactory
from tests.provisioning.engine.conftest import Answer, Recorder, recorder, stream
from tests.provisioning.engine.logs import append_events, make_stream

__all__ = ["recorder", "stream"]


@pytest.fixture(autouse=True)
def nothing_noted(settings: Settings) -> Iterator[None]:
    """Delete the counts of other tests, and raise the number of streams that the metrics include.

    The metrics include only the oldest streams, and other tests have left streams that are older than the stream of the test.
    """
    stream_tallies._noted.clear()
    settings.METRICS_STREAMS = 1000
    settings.DELIVERY_RETRY_DELAYS = [3600.0]
    yield
    stream_tallies._noted.clear()


def values_of(stream: EventStream) -> dict[str, float]:
    """Return the values of the metrics of one stream, by the name of the metric and its other labels."""
    return {
        " ".join([sample.name, *(value for label, value in sample.labels.items() if label != "stream")]): sample.value
        for metric in STREAMS.collect()
        for sample in metric.samples
        if sample.labels.get("stream") == stream.pk
    }


def test_attempts_are_counted_by_result_after_the_process_has_stored_them(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    recorder.answers = {
        "user:b": [Answer(status="skipped", reason="filtered")],
        "user:c": [TransientFailure("busy")],
        "user:d": [DataFailure("refused")],
    }
    append_events(tenant, ["user:a", "user:b", "user:c", "user:d"])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, "user:a")
    assert "provisioning_stream_attempts_total delivered" not in values_of(stream)
    stream_tallies.flush()
    stream_tallies.flush()

    values = values_of(stream)

    counted = {name.partition(" ")[2]: value for name, value in values.items() if name.startswith("provisioning_stream_attempts_total")}
    assert counted == {"delivered": 1, "skipped": 1, "transient": 1, "data": 1}
    assert values["provisioning_stream_attempt_seconds_bucket +Inf"] == 4
    assert values["provisioning_stream_attempt_seconds_count"] == 4


def test_durations_are_counted_in_cumulative_buckets(tenant: Tenant) -> None:
    stream = make_stream(tenant)
    for name, count in (("le 0.05", 3), ("le 1", 2), ("le +Inf", 1), ("milliseconds", 13_500)):
        StreamTallyFactory.create(tenant_id=tenant.pk, stream_id=stream.pk, name=name, count=count)

    values = values_of(stream)

    found = {name.partition("bucket ")[2]: value for name, value in values.items() if "bucket" in name}
    assert found == {"0.05": 3, "0.1": 3, "0.25": 3, "0.5": 3, "1": 5, "2.5": 5, "5": 5, "10": 5, "+Inf": 6}
    assert values["provisioning_stream_attempt_seconds_sum"] == 13.5


def test_the_metrics_of_a_stream_show_its_lag_and_whether_it_is_held(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a", "user:b"])
    assert (values_of(stream)["provisioning_stream_positions_behind"], values_of(stream)["provisioning_stream_held"]) == (2, 0)
    dispatch.dispatch_tenant(tenant.pk)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE events_eventstream SET held_since = now() WHERE id = %s", [stream.pk])
    assert (values_of(stream)["provisioning_stream_positions_behind"], values_of(stream)["provisioning_stream_held"]) == (0, 1)


def test_only_the_oldest_enabled_streams_are_shown_with_one_query(tenant: Tenant, settings: Settings) -> None:
    streams = [make_stream(tenant) for _ in range(4)]
    EventStream.objects.of(tenant.pk).filter(pk=streams[0].pk).update(status="disabled")
    before = EventStream.all_tenants.filter(status="enabled", created_at__lt=streams[0].created_at).count()

    def shown(limit: int) -> tuple[set[str], int]:
        settings.METRICS_STREAMS = limit
        with CaptureQueriesContext(connection) as queries:
            found = {sample.labels["stream"] for metric in STREAMS.collect() for sample in metric.samples if "stream" in sample.labels}
        return found & {stream.pk for stream in streams}, len([query for query in queries if "events_eventstream" in query["sql"]])

    assert shown(before + 2) == ({streams[1].pk, streams[2].pk}, 1)
    assert shown(before + 9) == ({streams[1].pk, streams[2].pk, streams[3].pk}, 1)
    assert shown(0) == (set(), 1)


def test_counts_are_not_lost_if_the_statement_that_stores_them_fails(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, "user:a")
    too_long = stream.pk, "x" * 99
    stream_tallies._noted[too_long] += 1
    with pytest.raises(DataError), transaction.atomic():
        stream_tallies.flush()
    del stream_tallies._noted[too_long]

    stream_tallies.flush()

    assert values_of(stream)["provisioning_stream_attempts_total delivered"] == 1


def test_a_worker_stores_its_counts_while_another_process_sweeps(tenant: Tenant, committed_db: None, settings: Settings) -> None:
    settings.DELIVERY_SWEEP_SECONDS = 0.1
    stream = make_stream(tenant)
    execute("DELETE FROM provisioning_sweeper")
    assert take_lead(uuid4(), 60.0)
    stream_tallies._noted[stream.pk, "delivered"] += 2
    thread = SweeperThread()
    thread.start()
    try:
        eventually(lambda: values_of(stream).get("provisioning_stream_attempts_total delivered") == 2)
    finally:
        thread.stop()
        thread.join(10)
        execute("DELETE FROM provisioning_sweeper")


def test_the_counts_of_a_deleted_stream_are_deleted(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, "user:a")
    stream_tallies.flush()
    assert StreamTally.objects.filter(stream_id=stream.pk).count() == 3
    retention.drop_stream_rows(stream.pk)
    assert not StreamTally.objects.filter(stream_id=stream.pk).exists()
    StreamTallyFactory.create(tenant_id=tenant.pk, stream_id="est_gone", count=1)
    retention.prune()
    assert not StreamTally.objects.filter(stream_id="est_gone").exists()
    stream_tallies._noted["est_gone", "delivered"] += 1
    stream_tallies.flush()
    assert not StreamTally.objects.filter(stream_id="est_gone").exists()
