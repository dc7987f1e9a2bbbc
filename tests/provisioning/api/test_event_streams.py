"""The endpoints of the management interface for event streams."""

from __future__ import annotations

import re
from typing import Any

from django.utils import timezone

from events.log.numbering import number_tenant
from events.models import EventStream, Head
from foundation.timestamps import wire_time
from identity.models import Connection, Tenant
from provisioning.models import Action
from tests.factories.identity import make_user
from tests.factories.models.provisioning import ActionFactory
from tests.management import Management

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ODD_BODIES: list[dict[str, Any]] = [
    {"subscriptions": []},
    {"subscriptions": [{"event_type": "user.renamed"}]},
    {"subscriptions": ["user.created"]},
    {"subscriptions": [{"event_type": "user.created", "filter": 1}]},
    {"name": ""},
    {"name": "x" * 129},
    {"status": "paused"},
    {"destination": {"type": "action"}},
    {"destination": {"type": "action", "configuration": {}}},
    {"destination": {"type": "action", "configuration": {"action_id": "no id"}}},
    {"destination": {"type": "pigeon", "configuration": {}}},
    {"id": "est_0123456789012345678901"},
]


def body_of(action: Action, **changes: Any) -> dict[str, Any]:
    return {
        "name": "To the directory",
        "subscriptions": [{"event_type": "user.created"}, {"event_type": "user.deleted"}],
        "destination": {"type": "action", "configuration": {"action_id": str(action.pk)}},
        **changes,
    }


def test_the_members_of_a_created_stream_are_in_the_order_of_the_contract(api: Management, action: Action) -> None:
    answer = api.post("event-streams", body_of(action))
    assert answer.status == 201, answer.body
    stream = answer.json
    assert list(stream) == ["id", "status", "name", "subscriptions", "created_at", "updated_at", "destination"]
    assert re.fullmatch(r"est_[A-Za-z0-9]{22}", stream["id"])
    assert all(TIME.fullmatch(stream[name]) for name in ("created_at", "updated_at"))
    assert stream["status"] == "enabled"
    assert stream["subscriptions"] == [{"event_type": "user.created"}, {"event_type": "user.deleted"}]
    assert stream["destination"] == {"type": "action", "configuration": {"action_id": str(action.pk)}}
    assert api.get(f"event-streams/{stream['id']}").json == stream


def test_a_stream_can_be_created_disabled_and_without_a_name(api: Management, action: Action) -> None:
    body = body_of(action, status="disabled")
    del body["name"]
    stream = api.post("event-streams", body).json
    assert stream["status"] == "disabled"
    assert "name" not in stream


def test_names_of_streams_are_unique_per_tenant(api: Management, action: Action) -> None:
    assert api.post("event-streams", body_of(action)).status == 201
    assert api.post("event-streams", body_of(action)).status == 409


def test_an_invalid_body_creates_no_stream(api: Management, tenant: Tenant, action: Action) -> None:
    undeployed = ActionFactory.create(tenant_id=tenant.pk, name="Not yet", template="scim-user-provisioning")
    odd = [*ODD_BODIES, {"destination": {"type": "action", "configuration": {"action_id": str(undeployed.pk)}}}]
    for changes in odd:
        answer = api.post("event-streams", body_of(action, **changes))
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), changes
    assert api.get("event-streams").json == {"eventStreams": []}


def test_a_refusal_names_the_invalid_member_by_its_path(api: Management, action: Action) -> None:
    answer = api.post("event-streams", body_of(action, subscriptions=[{"event_type": "user.created"}, {"event_type": 1}]))
    assert answer.json["message"] == "Payload validation error: 'Expected type string' on property subscriptions[1].event_type"
    answer = api.post("event-streams", body_of(action, destination={"type": "action", "configuration": {}, "x": 1}))
    assert answer.json["message"] == "Payload validation error: 'Additional properties not allowed' on property destination.x"


def test_unsupported_destinations_are_refused_with_a_reason(api: Management, action: Action) -> None:
    destination = {"type": "eventbridge", "configuration": {"aws_account_id": "123456789012", "aws_region": "eu-west-1"}}
    answer = api.post("event-streams", body_of(action, destination=destination))
    assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")
    assert "eventbridge" in answer.json["message"]


def test_an_update_replaces_only_the_sent_members(api: Management, action: Action) -> None:
    stream = api.post("event-streams", body_of(action)).json
    path = f"event-streams/{stream['id']}"
    changed = api.patch(path, {"name": "Renamed", "subscriptions": [{"event_type": "user.updated"}]})
    assert changed.status == 200
    assert changed.json["name"] == "Renamed"
    assert changed.json["subscriptions"] == [{"event_type": "user.updated"}]
    assert changed.json["destination"] == stream["destination"]
    assert api.patch(path, {}).json == changed.json == api.get(path).json


def test_the_type_of_a_destination_cannot_be_changed(api: Management, action: Action) -> None:
    stream = api.post("event-streams", body_of(action)).json
    answer = api.patch(f"event-streams/{stream['id']}", {"destination": {"type": "webhook", "configuration": {}}})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_an_enabled_stream_starts_at_the_head_and_a_disabled_stream_delivers_nothing(
    api: Management, tenant: Tenant, action: Action, database_connection: Connection
) -> None:
    stream = api.post("event-streams", body_of(action)).json
    path = f"event-streams/{stream['id']}"
    assert api.patch(path, {"status": "disabled"}).json["status"] == "disabled"
    make_user(connection=database_connection)
    number_tenant(tenant.pk)
    assert api.patch(path, {"status": "enabled"}).json["status"] == "enabled"
    head = Head.objects.get(pk=tenant.pk).position
    assert EventStream.objects.of(tenant.pk).get(pk=stream["id"]).position == head


def test_a_held_stream_is_returned_with_its_status_and_the_reason_of_the_hold(api: Management, tenant: Tenant, action: Action) -> None:
    stream = api.post("event-streams", body_of(action)).json
    row = EventStream.objects.of(tenant.pk).get(pk=stream["id"])
    row.held_since, row.held_reason = timezone.now(), "The directory refuses every request."
    row.save()
    held = api.get(f"event-streams/{stream['id']}").json
    assert held["status"] == "enabled"
    assert held["held"] == {"since": wire_time(row.held_since), "reason": "The directory refuses every request."}


def test_a_second_deletion_is_not_an_error(api: Management, action: Action) -> None:
    stream = api.post("event-streams", body_of(action)).json
    path = f"event-streams/{stream['id']}"
    assert [(answer.status, answer.body) for answer in (api.delete(path), api.delete(path))] == [(204, b""), (204, b"")]
    assert api.get(path).json == {"statusCode": 404, "error": "Not Found", "message": "The event stream does not exist."}
    assert api.patch(path, {"name": "x"}).status == 404


def test_an_id_of_another_length_is_not_a_stream_id(api: Management) -> None:
    for answer in (api.get("event-streams/est_1"), api.patch("event-streams/est_1", {}), api.delete(f"event-streams/{'e' * 27}")):
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_uri")


def test_the_list_supports_only_checkpoint_pagination(api: Management, tenant: Tenant, action: Action) -> None:
    ids = [api.post("event-streams", body_of(action, name=str(number))).json["id"] for number in range(5)]
    built_in = Head.objects.get(pk=tenant.pk).stream_id
    first = api.get("event-streams", {"take": 2, "include_totals": "true", "page": 0}).json
    assert list(first) == ["eventStreams", "next"]
    rest = api.get("event-streams", {"from": first["next"]}).json
    assert list(rest) == ["eventStreams"]
    assert [stream["id"] for stream in first["eventStreams"] + rest["eventStreams"]] == ids
    assert built_in not in ids
    assert api.get(f"event-streams/{built_in}").status == 404
    assert api.delete(f"event-streams/{built_in}").status == 204
    assert Head.objects.get(pk=tenant.pk).stream_id == built_in
