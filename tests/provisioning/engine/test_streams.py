from __future__ import annotations

import uuid

import pytest

from events.models import EventStream
from identity.models import Tenant
from identity.services.failures import AlreadyExists, Invalid, NotFound, NotSupported
from provisioning.engine import delivering, dispatch, streams
from provisioning.models import Action, Delivery, Lane
from tests.factories.models.identity import TenantFactory
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events


@pytest.fixture
def action(tenant: Tenant) -> Action:
    action = Action(tenant=tenant, name="scim", template="scim-user-provisioning", is_deployed=True)
    action.save()
    return action


def _create(tenant: Tenant, action_id: object, **fields: object) -> EventStream:
    values = {"subscriptions": ["user.created"], "destination_type": "action", "destination": {"action_id": str(action_id)}, **fields}
    return streams.create_stream(tenant_id=tenant.pk, **values)  # type: ignore[arg-type]  # some tests pass invalid values


def test_a_new_stream_starts_at_the_head_of_the_log(tenant: Tenant, action: Action) -> None:
    append_events(tenant, ["user:a"] * 3)

    stream = _create(tenant, action.pk, name="to scim")

    assert (stream.position, stream.status, stream.destination) == (3, "enabled", {"action_id": str(action.pk)})
    assert EventStream.objects.of(tenant.pk).get(pk=stream.pk).position == 3


@pytest.mark.parametrize("subscriptions", [[], ["user.renamed"], ["user.created", "session.created"]])
def test_subscriptions_are_not_empty_and_name_only_known_event_types(tenant: Tenant, action: Action, subscriptions: list[str]) -> None:
    with pytest.raises(Invalid):
        _create(tenant, action.pk, subscriptions=subscriptions)


def test_a_stream_can_use_only_a_deployed_action_of_its_own_tenant(tenant: Tenant, action: Action) -> None:
    other = TenantFactory.create(id=f"{tenant.pk}-b", name="other", host=f"{tenant.pk}-b.example.test")
    for wrong in (uuid.uuid4(), "", "x"):
        with pytest.raises(Invalid):
            _create(tenant, wrong)
    with pytest.raises(Invalid):
        _create(other, action.pk)
    action.is_deployed = False
    action.save()
    with pytest.raises(Invalid):
        _create(tenant, action.pk)
    with pytest.raises(NotSupported):
        _create(tenant, action.pk, destination_type="eventbridge")


def test_names_of_streams_are_unique_within_a_tenant(tenant: Tenant, action: Action) -> None:
    _create(tenant, action.pk, name="one")

    with pytest.raises(AlreadyExists):
        _create(tenant, action.pk, name="one")


def test_events_recorded_while_a_stream_is_disabled_are_never_delivered(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    (before,) = append_events(tenant, ["user:a"])
    streams.disable_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    append_events(tenant, ["user:a", "user:b"])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, "user:a")
    assert recorder.taken == []

    assert streams.enable_stream(tenant_id=tenant.pk, stream_id=stream.pk).position == 3
    (after,) = append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, "user:a")

    # An event that was recorded before the stream was disabled is delivered, even if it was not dispatched by then.
    assert recorder.event_ids == [before.event_id, after.event_id]


def test_enabling_an_enabled_stream_skips_no_event(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a"])

    assert streams.enable_stream(tenant_id=tenant.pk, stream_id=stream.pk).position == 0


def test_deleting_a_stream_deletes_its_rows_and_can_be_repeated(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a", "user:b"])
    dispatch.dispatch_tenant(tenant.pk)

    for _ in range(2):
        streams.delete_stream(tenant_id=tenant.pk, stream_id=stream.pk)

    assert not EventStream.objects.of(tenant.pk).exists()
    assert not Delivery.objects.filter(stream_id=stream.pk).exists()
    assert not Lane.objects.filter(stream_id=stream.pk).exists()


def test_a_stream_of_another_tenant_is_not_found(tenant: Tenant, stream: EventStream) -> None:
    other = TenantFactory.create(id=f"{tenant.pk}-b", name="other", host=f"{tenant.pk}-b.example.test")

    for service in (streams.enable_stream, streams.disable_stream, streams.resume_stream, streams.update_stream):
        with pytest.raises(NotFound):
            service(tenant_id=other.pk, stream_id=stream.pk)
    streams.delete_stream(tenant_id=other.pk, stream_id=stream.pk)
    assert EventStream.objects.of(tenant.pk).filter(pk=stream.pk).exists()


def test_changed_subscriptions_apply_to_events_that_are_dispatched_later(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)

    streams.update_stream(tenant_id=tenant.pk, stream_id=stream.pk, name="deletions", subscriptions=["user.deleted", "user.deleted"])
    append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)

    assert Delivery.objects.filter(stream_id=stream.pk).count() == 1
    stream.refresh_from_db()
    assert (stream.name, stream.subscriptions, stream.position) == ("deletions", ["user.deleted"], 2)
