"""Changes of users reach a SCIM server. The tests use no mocks: the services, the log, the delivery engine and the server are real."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.models import Connection, Tenant
from identity.services.users import block_user, delete_user, update_user
from provisioning.engine import delivering, dispatch
from provisioning.engine.retrying import RetryLater
from provisioning.engine.streams import create_stream, resume_stream
from provisioning.models import ActionVersion, Delivery
from provisioning.services.actions import deploy_action, set_secret
from tests.factories.models.identity import ConnectionFactory, UserFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import TOKEN, RealServer, running_scim_server


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    with running_scim_server() as running:
        yield running


@pytest.fixture
def stream(tenant: Tenant, server: RealServer) -> Iterator[EventStream]:
    secrets = {"SCIM_BASE_URL": server.base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_CONNECTION_ALLOWLIST": "people"}
    action = ActionFactory.create(tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets)
    deploy_action(tenant_id=tenant.pk, action_id=action.pk)
    types = ["user.created", "user.updated", "user.deleted"]
    bound = {"action_id": str(action.pk)}
    yield create_stream(tenant_id=tenant.pk, name="scim", subscriptions=types, destination_type="action", destination=bound)
    server.clear()


def deliver(tenant: Tenant, stream: EventStream) -> list[tuple[str, str]]:
    """Number and dispatch the new events, and try to deliver each lane once.

    Return the event type and the state of every delivery, in the order of the events.
    """
    number_tenant(tenant.pk)
    dispatch.dispatch_tenant(tenant.pk)
    for key in Delivery.objects.filter(stream_id=stream.pk).values_list("key", flat=True).distinct():
        try:
            delivering.deliver_lane(stream.pk, key)
        except RetryLater:
            continue
    rows = Delivery.objects.filter(stream_id=stream.pk).order_by("position")
    return [(row.event_type, row.state) for row in rows]


def test_a_user_is_created_and_updated_and_deleted_on_the_server(
    tenant: Tenant, database_connection: Connection, stream: EventStream, server: RealServer
) -> None:
    user = UserFactory.create(
        tenant_id=tenant.pk, connection=database_connection, email="anna@example.test", given_name="Anna", name="Anna Berg"
    )
    assert deliver(tenant, stream) == [("user.created", "delivered")]
    found = server.user(user.user_id)
    assert found is not None
    assert (found["userName"], found["active"], found["name"]["givenName"]) == ("anna@example.test", True, "Anna")

    block_user(tenant_id=tenant.pk, user_id=user.user_id)
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"email": "new@example.test"})
    deliver(tenant, stream)
    found = server.user(user.user_id)
    assert found is not None
    assert (found["userName"], found["active"]) == ("new@example.test", False)

    delete_user(tenant_id=tenant.pk, user_id=user.user_id)
    assert {state for _, state in deliver(tenant, stream)} == {"delivered"}
    assert server.user(user.user_id) is None


def test_users_of_connections_outside_the_allow_list_are_skipped(
    tenant: Tenant, stream: EventStream, server: RealServer, settings: Settings
) -> None:
    staff = ConnectionFactory.create(tenant_id=tenant.pk, name="staff", strategy=settings.DATABASE_STRATEGY)
    UserFactory.create(tenant_id=tenant.pk, connection=staff, email="boss@example.test")
    assert deliver(tenant, stream) == [("user.created", "skipped")]
    assert server.users() == []


def test_a_stream_without_its_token_is_held_and_loses_no_event(
    tenant: Tenant, database_connection: Connection, stream: EventStream, server: RealServer
) -> None:
    action_id = stream.destination["action_id"]
    # A version without the token cannot be deployed. But a version that an older release deployed may lack the token.
    version = ActionVersion.objects.get(action_id=action_id, is_deployed=True)
    version.secrets = [secret for secret in version.secrets if secret["name"] != "SCIM_BEARER_TOKEN"]
    version.save(update_fields=["secrets"])
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
    states = deliver(tenant, stream)
    held = EventStream.objects.of(tenant.pk).get(pk=stream.pk)
    assert [state for _, state in states] == ["todo"]
    assert held.held_since is not None
    assert "SCIM_BEARER_TOKEN" in held.held_reason
    assert server.user(user.user_id) is None

    set_secret(tenant_id=tenant.pk, action_id=action_id, name="SCIM_BEARER_TOKEN", value=TOKEN)
    deploy_action(tenant_id=tenant.pk, action_id=action_id)
    resume_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    assert deliver(tenant, stream) == [("user.created", "delivered")]
    assert server.user(user.user_id) is not None
