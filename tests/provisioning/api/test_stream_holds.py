"""Held streams over the management interface: resuming a stream, approving deletions, deletion thresholds, and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from events.models import EventStream
from identity.models import Tenant
from provisioning.engine import breaker, deletion_guard, dispatch
from provisioning.engine.streams import create_stream, disable_stream
from provisioning.links import overlaps
from provisioning.links.shared_servers import servers_of_other_streams
from provisioning.models import Action, Delivery
from provisioning.scim.links import server_of
from tests.factories.admin import new_tenant
from tests.factories.models.provisioning import ActionFactory
from tests.management import Management
from tests.provisioning.engine.logs import append_events


def stage(tenant: Tenant, stream: EventStream) -> None:
    """Delete more users than the deletion threshold of the stream allows, so that the deletions are staged."""
    deletion_guard.set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=1)
    append_events(tenant, ["user:a", "user:b", "user:c"], event_type="user.deleted")
    dispatch.dispatch_tenant(tenant.pk)
    assert deletion_guard.is_staged(stream)


def hold(stream: EventStream) -> None:
    breaker.hold_stream(stream_id=stream.pk, tenant_id=stream.tenant_id, reason="The token has expired.")


def test_a_held_stream_can_be_resumed_and_resuming_an_active_stream_has_no_effect(api: Management, stream: EventStream) -> None:
    hold(stream)
    assert "held" in api.get(f"event-streams/{stream.pk}").json
    for _ in range(2):
        answer = api.post(f"event-streams/{stream.pk}/resume")
        assert (answer.status, answer.json["id"], "held" in answer.json) == (200, stream.pk, False)


def test_a_stream_with_staged_deletions_can_be_resumed_only_by_approving_them(api: Management, tenant: Tenant, stream: EventStream) -> None:
    stage(tenant, stream)
    path = f"event-streams/{stream.pk}"
    assert api.post(f"{path}/resume").status == 409
    assert api.patch(path, {"status": "enabled", "name": "Renamed"}).status == 409
    assert api.delete(f"{path}/deletion-threshold").status == 409
    assert api.get(path).json.get("name") != "Renamed"
    assert "held" in api.get(path).json
    threshold = api.get(f"{path}/deletion-threshold").json
    assert (threshold["threshold"], threshold["counted"], "staged_since" in threshold) == (1, 3, True)

    allowed = api.post(f"{path}/allow-deletions")
    assert (allowed.status, "held" in allowed.json) == (200, False)
    assert api.post(f"{path}/allow-deletions").status == 409
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"todo"}


@pytest.mark.parametrize("is_disabled", [False, True])
def test_enabling_a_held_stream_resumes_the_stream(api: Management, stream: EventStream, is_disabled: bool) -> None:
    hold(stream)
    if is_disabled:
        disable_stream(tenant_id=stream.tenant_id, stream_id=stream.pk)
    answer = api.patch(f"event-streams/{stream.pk}", {"status": "enabled"})
    assert (answer.status, answer.json["status"], "held" in answer.json) == (200, "enabled", False)


def test_a_disabled_stream_with_staged_deletions_cannot_be_enabled(api: Management, tenant: Tenant, stream: EventStream) -> None:
    stage(tenant, stream)
    path = f"event-streams/{stream.pk}"
    assert api.patch(path, {"status": "disabled"}).status == 200
    assert api.patch(path, {"status": "enabled"}).status == 409
    assert api.get(path).json["status"] == "disabled"


def test_a_threshold_can_be_set_read_and_removed(api: Management, stream: EventStream) -> None:
    path = f"event-streams/{stream.pk}/deletion-threshold"
    assert api.get(path).json == {"threshold": None}
    assert api.call("PUT", path, body={"threshold": 5}).json == {"threshold": 5, "window_seconds": 3600, "counted": 0}
    assert api.call("PUT", path, body={"threshold": 0, "window_seconds": 60}).json["window_seconds"] == 60
    assert api.get(path).json["threshold"] == 0
    assert api.delete(path).status == 204
    assert api.delete(path).status == 204
    assert api.get(path).json == {"threshold": None}


@pytest.mark.parametrize(
    "body",
    [{}, {"threshold": -1}, {"threshold": None}, {"threshold": "5"}, {"threshold": 5, "window_seconds": 0}, {"threshold": 5, "more": 1}],
)
def test_an_invalid_threshold_is_refused_and_changes_nothing(api: Management, stream: EventStream, body: dict[str, Any]) -> None:
    path = f"event-streams/{stream.pk}/deletion-threshold"
    assert api.call("PUT", path, body=body).status == 400
    assert api.get(path).json == {"threshold": None}


def test_the_read_scope_does_not_allow_resuming_a_stream(tenant: Tenant, stream: EventStream) -> None:
    reader = Management(tenant, scope="read:event_streams")
    hold(stream)
    path = f"event-streams/{stream.pk}"
    assert reader.get(f"{path}/deletion-threshold").status == 200
    for answer in (reader.post(f"{path}/resume"), reader.post(f"{path}/allow-deletions"), reader.delete(f"{path}/deletion-threshold")):
        assert answer.status == 403
    stream.refresh_from_db()
    assert stream.held_since is not None


def scim(tenant: Tenant, name: str, base_url: str = "https://scim.example.test/v2", connections: str = "") -> Action:
    secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": f"token-of-{name}", "SCIM_CONNECTION_ALLOWLIST": connections}
    return ActionFactory.create(tenant_id=tenant.pk, name=name, template="scim-user-provisioning", secrets=secrets, deploy=True)


def bound(action: Action, name: str, *, is_enabled: bool = True) -> EventStream:
    destination = {"action_id": str(action.pk)}
    return create_stream(
        tenant_id=action.tenant_id,
        name=name,
        subscriptions=["user.created"],
        destination_type="action",
        destination=destination,
        is_enabled=is_enabled,
    )


@pytest.mark.parametrize(
    ("base_url", "connections", "said"),
    [
        ("https://SCIM.example.test:443/v2/", "", "the connections people, staff"),
        ("https://scim.example.test./v2", "", "the connections people, staff"),
        ("https://scim.example.test/v2", "people,guests", "the connections people"),
        ("https://scim.example.test/v2", "guests", ""),
        ("https://scim.example.test/other", "", ""),
        ("https://other.example.test/v2", "", ""),
    ],
)
def test_two_streams_that_write_to_one_server_for_the_same_connections_cause_a_warning(
    api: Management, tenant: Tenant, base_url: str, connections: str, said: str
) -> None:
    first = bound(scim(tenant, "a", connections="people,staff"), "first")
    assert "warnings" not in api.get(f"event-streams/{first.pk}").json
    second = bound(scim(tenant, "b", base_url, connections), "second")
    shown = {stream["id"]: stream.get("warnings") for stream in api.get("event-streams").json["eventStreams"]}
    if not said:
        assert set(shown.values()) == {None}
        return
    assert shown[first.pk] == [
        f"The event stream second writes to the same server for {said}: the two streams overwrite each other's values."
    ]
    assert shown[second.pk] == [
        f"The event stream first writes to the same server for {said}: the two streams overwrite each other's values."
    ]
    assert api.get(f"event-streams/{first.pk}").json["warnings"] == shown[first.pk]


def test_a_disabled_stream_or_a_stream_of_another_tenant_causes_no_warning_at_other_streams(api: Management, tenant: Tenant) -> None:
    stream = bound(scim(tenant, "a"), "first")
    disabled = bound(scim(tenant, "b"), "second", is_enabled=False)
    bound(scim(other := new_tenant(), "c"), "third")
    assert "warnings" not in api.get(f"event-streams/{stream.pk}").json
    # The disabled stream itself has a warning: if it were enabled, it and the first stream would write to the same server.
    assert len(api.get(f"event-streams/{disabled.pk}").json["warnings"]) == 1
    assert overlaps.overlap_warnings(other.pk) == {}


def test_the_servers_of_other_streams_include_only_enabled_streams_of_the_tenant(tenant: Tenant) -> None:
    first = bound(scim(tenant, "a"), "first")
    assert servers_of_other_streams(tenant_id=tenant.pk, stream_id=first.pk) == frozenset()
    second = bound(scim(tenant, "b", "https://other.example.test/v2"), "second")
    bound(scim(tenant, "c", "https://third.example.test/v2"), "third", is_enabled=False)
    bound(scim(other := new_tenant(), "d"), "fifth")
    assert servers_of_other_streams(tenant_id=tenant.pk, stream_id=first.pk) == {server_of("https://other.example.test/v2")}
    assert len(servers_of_other_streams(tenant_id=tenant.pk, stream_id=second.pk)) == 1
    assert len(servers_of_other_streams(tenant_id=other.pk, stream_id="")) == 1


def test_an_action_is_returned_with_its_warnings(api: Management) -> None:
    body = {
        "name": "slow",
        "supported_triggers": [{"id": "event-stream", "version": "v1"}],
        "template": "scim-user-provisioning",
        "secrets": [{"name": "SCIM_TIMEOUT_MS", "value": "9000"}],
        "mapping": [
            {"path": "externalId", "source": "user_id"},
            {"path": "userName", "source": "email"},
            {"path": "favoriteColor", "source": "nickname"},
        ],
    }
    made = api.post("actions/actions", body)
    assert made.status == 201, made.body
    budget, attribute = made.json["warnings"]
    assert "more than its budget" in budget
    assert attribute.startswith("RFC 7643 has no attribute favoriteColor:")
    assert api.get(f"actions/actions/{made.json['id']}").json["warnings"] == made.json["warnings"]
    refused = api.post(f"actions/actions/{made.json['id']}/deploy")
    assert (refused.status, "SCIM_BASE_URL" in refused.json["message"]) == (400, True)
    assert "warnings" not in api.post("actions/actions", {**body, "name": "quick", "secrets": [], "mapping": None}).json


def test_saving_a_mapping_row_that_can_never_send_a_value_is_refused(api: Management) -> None:
    rows = [
        {"path": "externalId", "source": "user_id"},
        {"path": "userName", "source": "email"},
        {"path": "active", "source": "'true'"},
    ]
    body = {"name": "typed", "supported_triggers": [{"id": "event-stream", "version": "v1"}], "template": "scim-user-provisioning"}
    refused = api.post("actions/actions", {**body, "mapping": rows})
    assert (refused.status, "true or false is expected" in refused.json["message"]) == (400, True)
    made = api.post("actions/actions", body).json
    assert api.patch(f"actions/actions/{made['id']}", {"mapping": rows}).status == 400
    assert api.get(f"actions/actions/{made['id']}").json["mapping"] is None
