"""The versions of an action. Deliveries run the deployed version, and not the draft."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from events.models import EventStream
from identity.models import Connection, Tenant
from identity.services.failures import Conflict, NotFound
from identity.services.users import update_user
from provisioning.actions.secrets import open_sealed, open_secrets
from provisioning.actions.setups import deployed_setup
from provisioning.engine.streams import create_stream
from provisioning.models import Action, ActionVersion
from provisioning.services import action_versions
from provisioning.services.actions import create_action, deploy_action, deploy_version, deployed_version, set_secret, update_action
from tests.factories.models.identity import UserFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import TOKEN, RealServer, running_scim_server
from tests.provisioning.actions.test_delivered_users import deliver

NEEDED = {"SCIM_BASE_URL": "http://127.0.0.1:9/v2", "SCIM_BEARER_TOKEN": "first"}


@pytest.fixture
def action(tenant: Tenant) -> Action:
    return ActionFactory.create(tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=NEEDED)


def change(action: Action, **changes: Any) -> None:
    update_action(tenant_id=action.tenant_id, action_id=action.pk, changes=changes)


def deploy(action: Action) -> Action:
    return deploy_action(tenant_id=action.tenant_id, action_id=action.pk)


def running(action: Action) -> Any:
    setup = deployed_setup(tenant_id=action.tenant_id, action_id=action.pk)
    assert setup is not None
    return setup


def test_a_deployed_version_keeps_its_options_and_mapping_and_secrets(action: Action) -> None:
    deploy(action)
    change(action, options={"upsert": True}, mapping=None)
    set_secret(tenant_id=action.tenant_id, action_id=action.pk, name="SCIM_BEARER_TOKEN", value="second")
    assert (running(action).version, running(action).options) == (1, {})
    assert open_sealed(running(action))["SCIM_BEARER_TOKEN"] == "first"
    deploy(action)
    assert (running(action).version, running(action).options) == (2, {"upsert": True})
    assert open_sealed(running(action))["SCIM_BEARER_TOKEN"] == "second"


def test_an_action_that_was_never_deployed_does_not_run(action: Action) -> None:
    assert deployed_setup(tenant_id=action.tenant_id, action_id=action.pk) is None
    assert deployed_setup(tenant_id="another", action_id=deploy(action).pk) is None


def test_deploying_an_unchanged_draft_creates_no_version(action: Action) -> None:
    assert not action_versions.is_draft_deployed(action, None)
    deploy(action)
    deploy(action)
    assert [version.number for version in action.versions.all()] == [1]
    assert action_versions.is_draft_deployed(action, deployed_version(action))


def test_rolling_back_deploys_the_earlier_version_as_a_new_version(action: Action) -> None:
    deploy(action)
    first = ActionVersion.objects.get(action=action)
    change(action, options={"upsert": True})
    set_secret(tenant_id=action.tenant_id, action_id=action.pk, name="SCIM_BEARER_TOKEN", value="second")
    deploy(action)

    third = deploy_version(tenant_id=action.tenant_id, action_id=action.pk, version_id=first.pk)
    assert (third.number, running(action).version, running(action).options) == (3, 3, {})
    assert open_sealed(running(action))["SCIM_BEARER_TOKEN"] == "first"
    action.refresh_from_db()
    assert action.options == {"upsert": True}
    assert list(ActionVersion.objects.filter(action=action, is_deployed=True)) == [third]

    deploy_version(tenant_id=action.tenant_id, action_id=action.pk, version_id=first.pk, update_draft=True)
    action.refresh_from_db()
    assert (action.options, open_secrets(action)["SCIM_BEARER_TOKEN"]) == ({}, "first")


def test_a_version_of_another_action_cannot_be_deployed(tenant: Tenant, action: Action) -> None:
    other = deploy(ActionFactory.create(tenant_id=tenant.pk, name="other", template="scim-user-provisioning", secrets=NEEDED))
    for version_id in (ActionVersion.objects.get(action=other).pk, uuid.uuid4(), "no uuid"):
        with pytest.raises(NotFound):
            deploy_version(tenant_id=tenant.pk, action_id=action.pk, version_id=version_id)


def test_the_oldest_versions_above_the_limit_are_deleted_except_the_deployed_version(
    action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action_versions, "MAX_VERSIONS", 3)
    for number in range(5):
        change(action, options={"upsert": number % 2 == 0})
        deploy(action)
    assert [version.number for version in action.versions.all()] == [3, 4, 5]
    assert running(action).version == 5


def test_a_tenant_has_at_most_a_hundred_actions(tenant: Tenant) -> None:
    Action.objects.of(tenant.pk).bulk_create(
        Action(tenant=tenant, name=f"action {number}", template="scim-user-provisioning") for number in range(100)
    )
    with pytest.raises(Conflict, match="at most 100"):
        create_action(tenant_id=tenant.pk, name="one more", template="scim-user-provisioning")


def test_a_turn_reads_the_deployed_version_with_one_query(action: Action) -> None:
    deploy(action)
    with CaptureQueriesContext(connection) as queries:
        assert open_sealed(running(action))["SCIM_BEARER_TOKEN"] == "first"
    assert len(queries) == 1


def test_a_changed_draft_reaches_the_server_only_after_its_deployment(tenant: Tenant, database_connection: Connection) -> None:
    with running_scim_server() as server:
        action = ActionFactory.create(
            tenant_id=tenant.pk,
            name="to scim",
            template="scim-user-provisioning",
            secrets={"SCIM_BASE_URL": server.base_url, "SCIM_BEARER_TOKEN": TOKEN},
            deploy=True,
        )
        stream = create_stream(
            tenant_id=tenant.pk,
            subscriptions=["user.created", "user.updated"],
            destination_type="action",
            destination={"action_id": str(action.pk)},
        )
        user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test", nickname="anna")
        mapping = [
            {"path": "externalId", "source": "user_id"},
            {"path": "userName", "source": "email"},
            {"path": "nickName", "source": "upper(nickname)"},
        ]
        change(action, mapping=mapping)
        assert nickname(tenant, stream, server, user.user_id) == "anna"
        deploy(action)
        update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"given_name": "Anna"})
        assert nickname(tenant, stream, server, user.user_id) == "ANNA"


def nickname(tenant: Tenant, stream: EventStream, server: RealServer, user_id: str) -> Any:
    assert {state for _, state in deliver(tenant, stream)} == {"delivered"}
    found = server.user(user_id)
    assert found is not None
    return found["nickName"]
