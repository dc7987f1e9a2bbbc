"""The endpoints of the management interface for actions: drafts, deployment, versions, secrets and executions."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from events.models import EventStream
from identity.models import Connection, Tenant
from provisioning.actions.secrets import open_secrets
from provisioning.documents.executions import execution_id
from provisioning.engine.streams import create_stream
from provisioning.models import Action, ActionVersion, Attempt, Delivery
from tests.factories.actions import make_deployed_action
from tests.factories.identity import make_user
from tests.management import Management
from tests.provisioning.actions.test_delivered_users import deliver

SECRET = "never-to-be-returned-0123456789"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TRIGGERS = [{"id": "event-stream", "version": "v1"}]


def body_of(**changes: Any) -> dict[str, Any]:
    return {
        "name": "To the directory",
        "supported_triggers": TRIGGERS,
        "template": "scim-user-provisioning",
        "secrets": [{"name": "SCIM_BASE_URL", "value": "http://127.0.0.1:9/v2"}, {"name": "SCIM_BEARER_TOKEN", "value": SECRET}],
        **changes,
    }


def test_a_created_action_is_returned_in_the_format_of_the_contract(api: Management) -> None:
    answer = api.post("actions/actions", body_of(options={"upsert": True}))
    assert answer.status == 201, answer.body
    action = answer.json
    assert uuid.UUID(action["id"]).version == 4
    assert {name: action[name] for name in ("name", "supported_triggers", "template", "options", "mapping", "code", "dependencies")} == {
        "name": "To the directory",
        "supported_triggers": TRIGGERS,
        "template": "scim-user-provisioning",
        "options": {"upsert": True},
        "mapping": None,
        "code": "",
        "dependencies": [],
    }
    assert (action["status"], action["all_changes_deployed"]) == ("built", False)
    assert "deployed_version" not in action
    assert [sorted(secret) for secret in action["secrets"]] == [["name", "updated_at"]] * 2
    assert all(TIME.fullmatch(action[name]) for name in ("built_at", "created_at", "updated_at"))
    assert SECRET not in answer.body.decode()
    assert api.get(f"actions/actions/{action['id']}").json == action


def test_an_action_can_be_deployed_on_creation(api: Management) -> None:
    action = api.post("actions/actions", body_of(deploy=True)).json
    assert action["all_changes_deployed"] is True
    assert (action["deployed_version"]["number"], action["deployed_version"]["deployed"]) == (1, True)
    assert action["current_version"] == action["deployed_version"]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"name": ""}, "name"),
        ({"template": "unknown"}, "template"),
        ({"supported_triggers": []}, "supported_triggers"),
        ({"supported_triggers": [{"id": "post-login"}]}, "supported_triggers[0].id"),
        ({"entry_point": "provisioning.actions.event_stream.v1.ScimUserProvisioning"}, "template"),
        ({"options": {"update_mode": "post"}}, "options"),
        ({"options": {"scope": "email | ]"}}, "options"),
        ({"mapping": [{"path": "externalId", "source": "user_id"}, {"path": "userName", "source": "email | ]"}]}, "mapping[1].source"),
        ({"mapping": [{"path": "externalId", "source": "user_id"}]}, "mapping"),
        ({"secrets": [{"name": "SCIM_TIMEOUT_MS", "value": "soon"}]}, "secrets"),
        ({"secrets": [{"name": "SCIM_TIMEOUT_MS"}]}, "secrets[0].value"),
        ({"secrets": [{"name": f"S{number}", "value": "x"} for number in range(31)]}, "secrets"),
        ({"odd": 1}, "odd"),
    ],
)
def test_an_invalid_body_creates_no_action(api: Management, changes: dict[str, Any], place: str) -> None:
    answer = api.post("actions/actions", body_of(**changes))
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), answer.body
    assert answer.json["message"].endswith(f" on property {place}")
    assert SECRET not in answer.body.decode()
    assert api.get("actions/actions").json == {"total": 0, "page": 0, "per_page": 50, "actions": []}


@pytest.mark.parametrize(
    "changes", [{"code": "exports.x = 1"}, {"dependencies": [{"name": "lodash"}]}, {"modules": [{}]}, {"runtime": "node22"}]
)
def test_custom_code_is_refused_with_a_reason(api: Management, changes: dict[str, Any]) -> None:
    answer = api.post("actions/actions", body_of(**changes))
    assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")
    assert api.post("actions/actions", body_of(code="", dependencies=[], modules=[], runtime="python")).status == 201


def test_an_action_can_name_an_installed_entry_point_instead_of_a_template(api: Management) -> None:
    path = "provisioning.actions.event_stream.v1.ScimUserProvisioning"
    body = body_of(entry_point=path)
    del body["template"]
    action = api.post("actions/actions", body).json
    assert action["entry_point"] == path
    assert "template" not in action
    del body["entry_point"]
    assert api.post("actions/actions", body).status == 400
    refused = api.post("actions/actions", {**body, "name": "other", "entry_point": "os.system"})
    assert (refused.status, "entry_point" in refused.json["message"]) == (400, True)


def test_names_are_unique_and_a_tenant_has_at_most_a_hundred_actions(api: Management, tenant: Tenant) -> None:
    assert api.post("actions/actions", body_of()).status == 201
    assert api.post("actions/actions", body_of()).status == 409
    Action.objects.of(tenant.pk).bulk_create(
        Action(tenant=tenant, name=f"n{number}", template="scim-user-provisioning") for number in range(99)
    )
    answer = api.post("actions/actions", body_of(name="one more"))
    assert (answer.status, "at most 100" in answer.json["message"]) == (409, True)


def test_lists_have_pages_totals_and_filters(api: Management, tenant: Tenant) -> None:
    deployed = str(make_deployed_action(tenant).pk)
    own = api.post("actions/actions", body_of(name="Draft")).json["id"]
    page = api.get("actions/actions", {"per_page": 1, "page": 1}).json
    assert (page["total"], page["page"], page["per_page"], [action["id"] for action in page["actions"]]) == (2, 1, 1, [own])

    def ids(**query: Any) -> list[str]:
        return [action["id"] for action in api.get("actions/actions", query).json["actions"]]

    assert ids(deployed="true") == [deployed]
    assert ids(deployed="false") == [own]
    assert ids(actionName="Draft") == [own]
    assert ids(triggerId="event-stream") == ids(installed="true") == [deployed, own]
    assert ids(triggerId="post-login") == ids(installed="false") == []
    assert api.get("actions/actions", {"per_page": 101}).status == 400


def test_changing_the_draft_does_not_change_the_deployed_version(api: Management) -> None:
    action = api.post("actions/actions", body_of(deploy=True)).json
    path = f"actions/actions/{action['id']}"
    changed = api.patch(path, {"options": {"update_mode": "patch"}, "name": "Renamed"}).json
    assert (changed["options"], changed["name"], changed["all_changes_deployed"]) == ({"update_mode": "patch"}, "Renamed", False)
    assert changed["deployed_version"]["options"] == {}
    version = api.post(f"{path}/deploy")
    assert (version.status, version.json["number"], version.json["options"]) == (202, 2, {"update_mode": "patch"})
    assert api.get(path).json["all_changes_deployed"] is True


def test_a_list_of_secrets_replaces_the_stored_list_and_keeps_unsent_values(api: Management, tenant: Tenant) -> None:
    action = api.post("actions/actions", body_of()).json
    path = f"actions/actions/{action['id']}"
    changed = api.patch(path, {"secrets": [{"name": "SCIM_BEARER_TOKEN"}, {"name": "SCIM_TIMEOUT_MS", "value": "700"}]})
    assert [secret["name"] for secret in changed.json["secrets"]] == ["SCIM_BEARER_TOKEN", "SCIM_TIMEOUT_MS"]
    assert open_secrets(Action.objects.of(tenant.pk).get()) == {"SCIM_BEARER_TOKEN": SECRET, "SCIM_TIMEOUT_MS": "700"}
    refused = api.patch(path, {"secrets": [{"name": "SCIM_BEARER_TOKEN"}, {"name": "NEVER_SET"}]})
    assert refused.status == 400
    assert open_secrets(Action.objects.of(tenant.pk).get()) == {"SCIM_BEARER_TOKEN": SECRET, "SCIM_TIMEOUT_MS": "700"}


def test_changing_the_server_requires_its_token(api: Management, tenant: Tenant) -> None:
    path = f"actions/actions/{api.post('actions/actions', body_of()).json['id']}"
    before = open_secrets(Action.objects.of(tenant.pk).get())
    moved = {"name": "SCIM_BASE_URL", "value": "https://other.example.test/v2"}
    refused = api.patch(path, {"secrets": [moved, {"name": "SCIM_BEARER_TOKEN"}]})
    assert (refused.status, refused.json["errorCode"]) == (400, "invalid_body")
    assert "enter SCIM_BEARER_TOKEN as well" in refused.json["message"]
    assert open_secrets(Action.objects.of(tenant.pk).get()) == before
    assert api.patch(path, {"secrets": [moved, {"name": "SCIM_BEARER_TOKEN", "value": "another"}]}).status == 200
    assert open_secrets(Action.objects.of(tenant.pk).get()) == {"SCIM_BASE_URL": moved["value"], "SCIM_BEARER_TOKEN": "another"}


def test_versions_are_listed_newest_first_and_can_be_deployed_again(api: Management) -> None:
    action = api.post("actions/actions", body_of(deploy=True)).json
    path = f"actions/actions/{action['id']}"
    first = action["deployed_version"]["id"]
    api.patch(path, {"options": {"upsert": True}})
    api.post(f"{path}/deploy")
    listed = api.get(f"{path}/versions").json
    assert [(version["number"], version["deployed"]) for version in listed["versions"]] == [(2, True), (1, False)]
    assert listed["total"] == 2
    one = api.get(f"{path}/versions/{first}").json
    assert one == listed["versions"][1]
    assert (one["action_id"], one["action"]["name"], one["status"], one["errors"]) == (action["id"], "To the directory", "built", [])

    back = api.post(f"{path}/versions/{first}/deploy", {"update_draft": True})
    assert (back.status, back.json["number"], back.json["options"]) == (202, 3, {})
    assert (api.get(path).json["options"], api.get(path).json["all_changes_deployed"]) == ({}, True)
    assert api.get(f"{path}/versions/{uuid.uuid4()}").status == 404
    assert api.post(f"{path}/versions/no-uuid/deploy").status == 404


def test_an_action_that_a_stream_uses_can_be_deleted_only_by_force(api: Management, tenant: Tenant) -> None:
    action = make_deployed_action(tenant)
    create_stream(tenant_id=tenant.pk, subscriptions=["user.created"], destination_type="action", destination={"action_id": str(action.pk)})
    path = f"actions/actions/{action.pk}"
    assert api.delete(path).status == 409
    answer = api.call("DELETE", path, query={"force": "true"})
    assert (answer.status, answer.body) == (204, b"")
    assert api.get(path).status == api.delete(path).status == 404
    assert not ActionVersion.objects.filter(action_id=action.pk).exists()


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "actions/actions", "read:actions"),
        ("POST", "actions/actions", "create:actions"),
        ("PATCH", "actions/actions/x", "update:actions"),
        ("DELETE", "actions/actions/x", "delete:actions"),
        ("POST", "actions/actions/x/deploy", "create:actions"),
        ("POST", "actions/actions/x/test", "create:actions"),
        ("GET", "actions/actions/x/versions", "read:actions"),
        ("POST", "actions/actions/x/versions/x/deploy", "create:actions"),
        ("GET", "actions/executions/x", "read:actions"),
        ("GET", "actions/triggers", "read:actions"),
        ("PATCH", "actions/triggers/event-stream/bindings", "update:actions"),
    ],
)
def test_each_operation_requires_its_scope(tenant: Tenant, method: str, path: str, scope: str) -> None:
    refused = Management(tenant, scope="read:users").call(method, path)
    assert (refused.status, refused.json["message"]) == (403, f"Insufficient scope, expected any of: {scope}")


def test_the_only_trigger_has_no_bindings_and_refuses_new_bindings(api: Management) -> None:
    [trigger] = api.get("actions/triggers").json["triggers"]
    assert (trigger["id"], trigger["version"], trigger["binding_policy"]) == ("event-stream", "v1", "entity-bound")
    path = "actions/triggers/event-stream/bindings"
    nothing = {"total": 0, "page": 0, "per_page": 50, "bindings": []}
    assert api.get(path).json == api.patch(path, {"bindings": []}).json == nothing
    refused = api.patch(path, {"bindings": [{"ref": {"type": "action_name", "value": "x"}}]})
    assert (refused.status, refused.json["errorCode"]) == (400, "operation_not_supported")
    assert api.get("actions/triggers/post-login/bindings").status == 404


@pytest.fixture
def failed(tenant: Tenant, database_connection: Connection) -> Attempt:
    """Return the failed attempt of an action whose server is not running."""
    secrets = {"SCIM_BASE_URL": "http://127.0.0.1:9/v2", "SCIM_BEARER_TOKEN": SECRET, "SCIM_MAX_RETRIES": "0"}
    body = body_of(deploy=True, secrets=[{"name": name, "value": value} for name, value in secrets.items()])
    action = Management(tenant).post("actions/actions", body).json
    stream: EventStream = create_stream(
        tenant_id=tenant.pk, subscriptions=["user.created"], destination_type="action", destination={"action_id": action["id"]}
    )
    make_user(connection=database_connection)
    deliver(tenant, stream)
    return Attempt.objects.get(tenant_id=tenant.pk)


def test_every_run_can_be_read_as_an_execution_by_its_id(api: Management, failed: Attempt) -> None:
    identifier = execution_id(failed.delivery_id, failed.number)
    delivery = Delivery.objects.get(pk=failed.delivery_id)
    history = api.get(f"event-streams/{delivery.stream_id}/deliveries/{delivery.event_id}").json
    assert [attempt["execution_id"] for attempt in history["attempts"]] == [str(identifier)]

    answer = api.get(f"actions/executions/{identifier}")
    assert answer.status == 200
    execution = answer.json
    assert (execution["id"], execution["trigger_id"], execution["status"]) == (str(identifier), "event-stream", "final")
    [result] = execution["results"]
    assert (result["action_name"], result["error"]["id"]) == ("To the directory", "transient")
    assert "no connection" in result["error"]["msg"].lower()
    assert TIME.fullmatch(result["started_at"])
    assert result["started_at"] <= result["ended_at"]
    assert SECRET not in answer.body.decode()


def test_foreign_executions_old_executions_and_malformed_ids_are_not_found(api: Management, failed: Attempt, tenant: Tenant) -> None:
    identifier = execution_id(failed.delivery_id, failed.number)
    odd = [uuid.uuid4(), uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), execution_id(failed.delivery_id, 2**62 - 1), "no-uuid"]
    assert {api.get(f"actions/executions/{wanted}").status for wanted in odd} == {404}
    Attempt.objects.filter(pk=failed.pk).update(started_at=timezone.now() - timedelta(days=11))
    assert api.get(f"actions/executions/{identifier}").status == 404
    Attempt.objects.filter(pk=failed.pk).update(started_at=timezone.now(), tenant_id="another")
    assert api.get(f"actions/executions/{identifier}").status == 404


@pytest.mark.parametrize(("delivery", "number"), [(1, 1), (2**59 + 4097, 7), (4096, 2**31 - 1)])
def test_the_execution_id_of_each_run_is_a_different_uuid(delivery: int, number: int) -> None:
    made = execution_id(delivery, number)
    assert (made.version, made.variant) == (8, uuid.RFC_4122)
    assert len({made, execution_id(delivery, number + 1), execution_id(delivery + 1, number)}) == 3
