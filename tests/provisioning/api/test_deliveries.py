"""The endpoints of the management interface for deliveries: failures, the history of an event, redeliveries, test events and counts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from events.models import Event, EventStream, LogEntry
from events.record.catalogue import EVENT_TYPES
from identity.models import Job, Tenant
from identity.services.jobs import run_job
from provisioning.dead_letters import redelivery_jobs
from provisioning.engine import delivering, lanes, retention
from provisioning.engine.dispatch import dispatch_stream
from provisioning.models import DeadLetter, Delivery
from provisioning.runs.failures import DataFailure
from tests.management import Management
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def failed(tenant: Tenant, stream: EventStream, recorder: Recorder, *keys: str) -> list[Event]:
    """Append one event for each key, and make each event a dead letter. Return the events."""
    events = append_events(tenant, list(keys))
    for key in keys:
        recorder.answers.setdefault(key, []).append(DataFailure("PUT /Users/{id} was refused", status=400))
    dispatch_stream(stream.pk)
    deliver_all(stream)
    return events


def deliver_all(stream: EventStream) -> None:
    claim = lanes.claim_oldest(stream.pk)
    while claim is not None:
        claim = delivering.deliver_claim(claim, delivering.Turn()).next or lanes.claim_oldest(stream.pk)


@pytest.fixture(autouse=True)
def one_attempt(settings: Any) -> None:
    settings.DELIVERY_RETRY_DELAYS = []


def test_a_failed_event_is_listed_with_its_attempts_and_the_event_itself(
    api: Management, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    (event,) = failed(tenant, stream, recorder, "user:a")
    answer = api.get(f"event-streams/{stream.pk}/deliveries")
    assert answer.status == 200, answer.body
    (delivery,) = answer.json["deliveries"]
    assert list(answer.json) == ["deliveries"]
    assert (delivery["id"], delivery["event_stream_id"], delivery["status"]) == (event.event_id, stream.pk, "failed")
    (attempt,) = delivery["attempts"]
    assert (attempt["status"], attempt["error_message"]) == ("failed", "PUT /Users/{id} was refused")
    assert TIME.fullmatch(attempt["timestamp"])
    assert attempt["duration"] >= 0
    assert (delivery["event"]["id"], delivery["event"]["x0stream"]) == (event.event_id, stream.pk)
    assert delivery["event"]["data"] == {"object": {"key": "user:a", "number": 0}}


def test_a_delivered_event_is_not_in_the_list_but_has_a_history(
    api: Management, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    (event,) = append_events(tenant, ["user:a"])
    dispatch_stream(stream.pk)
    path = f"event-streams/{stream.pk}/deliveries"
    assert api.get(f"{path}/{event.event_id}").json["status"] == "pending"
    deliver_all(stream)
    assert api.get(path).json == {"deliveries": []}
    history = api.get(f"{path}/{event.event_id}").json
    assert (history["status"], [attempt["status"] for attempt in history["attempts"]]) == ("delivered", ["delivered"])
    assert "event" not in history


def test_the_list_of_failures_can_be_read_in_the_checkpoint_format(
    api: Management, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    events = failed(tenant, stream, recorder, "user:a", "user:b", "user:c")
    path = f"event-streams/{stream.pk}/deliveries"
    first = api.get(path, {"take": 2}).json
    second = api.get(path, {"take": 2, "from": first["next"]}).json
    assert [row["id"] for row in [*first["deliveries"], *second["deliveries"]]] == [event.event_id for event in events]
    assert "next" not in second


def test_filters_can_be_combined_and_invalid_filters_are_refused(
    api: Management, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    failed(tenant, stream, recorder, "user:a")
    path = f"event-streams/{stream.pk}/deliveries"
    for fits in ({"statuses": "failed"}, {"event_types": "user.created, user.updated"}, {"date_from": "2020-01-01T00:00:00Z"}):
        assert len(api.get(path, fits).json["deliveries"]) == 1, fits
    for misses in ({"event_types": "user.created"}, {"date_to": "2020-01-01T00:00:00Z"}, {"date_from": "2999-01-01T00:00:00Z"}):
        assert api.get(path, misses).json["deliveries"] == [], misses
    for odd in (
        {"statuses": "delivered"},
        {"event_types": "user.renamed"},
        {"date_from": "yesterday"},
        {"date_to": "2020-01-01T00:00:00.5Z"},
    ):
        answer = api.get(path, odd)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_query_string"), odd


def test_one_event_is_redelivered_and_the_history_of_the_event_shows_the_redelivery(
    api: Management, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    (event,) = failed(tenant, stream, recorder, "user:a")
    path = f"event-streams/{stream.pk}/redeliver/{event.event_id}"
    answer = api.post(path)
    assert (answer.status, answer.json) == (202, {})
    history = f"event-streams/{stream.pk}/deliveries/{event.event_id}"
    assert [attempt["status"] for attempt in api.get(history).json["attempts"]] == ["failed", "retrying"]
    again = api.post(path)
    assert (again.status, again.json["statusCode"]) == (409, 409)
    deliver_all(stream)
    assert [attempt["status"] for attempt in api.get(history).json["attempts"]] == ["failed", "retrying", "delivered"]
    assert DeadLetter.objects.get(event_id=event.event_id).redelivery_actor == f"client {api.client.client_id}"


def test_a_job_redelivers_the_dead_letters_of_each_user_in_order(
    api: Management, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    events = failed(tenant, stream, recorder, "user:b", "user:a", "user:b")
    sent = {"statuses": ["failed"], "event_types": ["user.updated"], "date_from": "2020-01-01T00:00:00Z"}
    answer = api.post(f"event-streams/{stream.pk}/redeliver", sent)
    assert (answer.status, answer.json) == (202, sent)
    assert api.post(f"event-streams/{stream.pk}/redeliver", {}).status == 409
    late = failed(tenant, stream, recorder, "user:c")
    job = Job.objects.of(tenant.pk).get()
    recorder.taken.clear()
    run_job(job.pk)
    deliver_all(stream)
    run_job(job.pk)
    job.refresh_from_db()
    assert (job.status, job.summary) == ("completed", {"total": 3, "redelivered": 3, "skipped": 0})
    assert [event_id for key, event_id, _ in recorder.taken if key == "user:b"] == [events[0].event_id, events[2].event_id]
    assert Delivery.objects.get(event_id=late[0].event_id).state == "dead"


def test_a_job_does_not_redeliver_a_dead_letter_that_failed_again_during_the_job(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    failed(tenant, stream, recorder, "user:a", "user:b")
    job = redelivery_jobs.start_redelivery_job(
        tenant_id=tenant.pk, stream_id=stream.pk, selection=redelivery_jobs.Selection(), actor="an operator", rate_per_second=1
    )
    recorder.answers = {key: [DataFailure("still refused", status=400)] * 5 for key in ("user:a", "user:b")}
    for _ in range(4):
        run_job(job.pk)
        deliver_all(stream)
    job.refresh_from_db()
    assert (job.status, job.summary["redelivered"]) == ("completed", 2)
    assert list(Delivery.objects.filter(stream_id=stream.pk).values_list("redeliveries", flat=True)) == [1, 1]


def test_an_invalid_selection_redelivers_nothing(api: Management, tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    failed(tenant, stream, recorder, "user:a")
    for odd in ({"statuses": ["delivered"]}, {"event_types": ["user.renamed"]}, {"date_to": "soon"}, {"date_from": 5}, {"x": 1}):
        answer = api.post(f"event-streams/{stream.pk}/redeliver", odd)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), odd
    assert not Job.objects.of(tenant.pk).exists()


def test_a_test_event_is_sent_to_its_stream_and_is_not_logged(
    api: Management, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    answer = api.post(f"event-streams/{stream.pk}/test", {"event_type": "user.deleted", "data": {"object": {"user_id": "x"}}})
    assert answer.status == 202, answer.body
    assert (answer.json["status"], answer.json["attempts"]) == ("pending", [])
    assert answer.json["event"]["x0purpose"] == "test"
    assert answer.json["event"]["data"] == {"object": {"user_id": "x"}}
    deliver_all(stream)
    assert recorder.event_ids == [answer.json["id"]]
    assert not LogEntry.objects.filter(tenant_id=tenant.pk).exists()


def test_every_event_type_has_a_sample(api: Management, stream: EventStream) -> None:
    for event_type in EVENT_TYPES:
        sent = api.post(f"event-streams/{stream.pk}/test", {"event_type": event_type})
        assert (sent.status, sent.json["event"]["type"]) == (202, event_type)


def test_a_disabled_stream_refuses_test_events(api: Management, tenant: Tenant, stream: EventStream, settings: Any) -> None:
    sent = api.post(f"event-streams/{stream.pk}/test", {"event_type": "user.created"}).json
    assert Event.objects.filter(event_id=sent["id"]).exists()
    stream.status = EventStream.Status.DISABLED
    stream.save()
    assert api.post(f"event-streams/{stream.pk}/test", {"event_type": "user.created"}).status == 409
    retention.drop_stream_rows(stream.pk)
    assert not Event.objects.filter(event_id=sent["id"]).exists()


def test_the_counts_of_a_stream_are_returned_for_each_day(api: Management, tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    failed(tenant, stream, recorder, "user:a")
    append_events(tenant, ["user:b", "user:c"])
    dispatch_stream(stream.pk)
    deliver_all(stream)
    answer = api.get(f"event-streams/{stream.pk}/stats").json
    assert answer["window"]["bucket_interval"] == {"scale_factor": 86400}
    assert len(answer["buckets"]) == 15
    successful, unsuccessful = answer["metrics"]
    assert (successful["name"], successful["window_total"], successful["data"][-1]) == ("svc.event_streams.successful_deliveries", 2, 2)
    assert (unsuccessful["window_total"], unsuccessful["data"]) == (1, [0] * 14 + [1])
    odd = api.get(f"event-streams/{stream.pk}/stats", {"date_from": "2020-01-01T00:00:00Z"})
    assert odd.status == 400


def test_malformed_ids_get_400_and_unknown_ids_get_404(api: Management, stream: EventStream) -> None:
    assert api.get("event-streams/est_short/deliveries").status == 400
    assert api.get(f"event-streams/est_{'x' * 22}/deliveries").status == 404
    assert api.get(f"event-streams/{stream.pk}/deliveries/evt_short").status == 400
    assert api.get(f"event-streams/{stream.pk}/deliveries/evt_{'x' * 22}").status == 404
    refused = api.post(f"event-streams/{stream.pk}/redeliver/evt_{'x' * 22}")
    assert (refused.status, refused.json["message"]) == (404, "No delivery of this event has failed.")


def test_each_operation_requires_its_scope(tenant: Tenant, stream: EventStream) -> None:
    reader = Management(tenant, scope="read:event_streams")
    path = f"event-streams/{stream.pk}"
    assert reader.get(f"{path}/deliveries").status == 200
    assert reader.get(f"{path}/deliveries/evt_{'x' * 22}").status == 403
    assert reader.post(f"{path}/redeliver", {}).status == 403
    assert reader.post(f"{path}/redeliver/evt_{'x' * 22}").status == 403
    assert reader.post(f"{path}/test", {"event_type": "user.created"}).status == 403
