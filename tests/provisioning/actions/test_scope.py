"""The scope of an action. Events of users outside the scope are skipped, with a recorded reason and without a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from events.models import EventStream
from identity.models import Connection, Tenant, User
from identity.services.users import delete_user, update_user
from provisioning.actions.scope import is_in_scope
from provisioning.actions.setups import draft_setup
from provisioning.engine.runner import run_action
from provisioning.engine.streams import create_stream
from provisioning.links.rows import RunLinks
from provisioning.models import Action, Delivery
from provisioning.runs.failures import DataFailure
from provisioning.trials.mapping_preview import Preview, mapping_preview
from tests.factories.models.identity import UserFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import TOKEN, MisbehavingServer, by_verb, listing, misbehaving_server, reply, user
from tests.factories.scim_runs import envelope
from tests.management import Management
from tests.provisioning.actions.test_delivered_users import deliver

SALES = "app_metadata.department == 'Sales'"
ScopedAction = Callable[..., Action]


@pytest.fixture
def scoped(tenant: Tenant) -> ScopedAction:
    def make(server: MisbehavingServer, scope: str = SALES) -> Action:
        secrets = {"SCIM_BASE_URL": server.base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_MAX_RETRIES": "0"}
        return ActionFactory.create(
            tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets, options={"scope": scope}, deploy=True
        )

    return make


def stream_of(action: Action) -> EventStream:
    types, bound = ["user.created", "user.updated", "user.deleted"], {"action_id": str(action.pk)}
    return create_stream(tenant_id=action.tenant_id, subscriptions=types, destination_type="action", destination=bound)


def person(connection: Connection, department: str) -> User:
    metadata = {"department": department}
    return UserFactory.create(tenant_id=connection.tenant_id, connection=connection, email="anna@example.test", app_metadata=metadata)


def run(action: Action, event_type: str, document: dict[str, Any]) -> Any:
    event = envelope(event_type)
    event["data"]["object"].update(document)
    setup = draft_setup(action)
    return run_action(setup, event, attempt=1, deadline_seconds=5.0, correlation_id="evt_1234567890123456789012", links=RunLinks(setup, 1))


@pytest.mark.parametrize("value", ["false", "", 0, 1, [], ["x"], {}, {"a": 1}])
def test_a_scope_whose_result_is_not_a_boolean_fails(value: Any) -> None:
    with pytest.raises(DataFailure, match="neither true nor false"):
        is_in_scope({"app_metadata": {"vip": value}}, "app_metadata.vip")


def test_the_error_of_a_scope_without_a_result_quotes_no_value() -> None:
    with pytest.raises(DataFailure, match="cannot be evaluated for this user") as raised:
        is_in_scope({"email": 17, "name": "Anna Berg"}, "contains(email, 'x')")
    assert "17" not in str(raised.value)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("", True),
        ("email_verified", True),
        ("blocked", False),
        ("app_metadata.vip", False),
        ("!blocked", True),
        (SALES, True),
        ("app_metadata.department == 'Support'", False),
        ("nobody.at.home == 'Sales'", False),
        (f"email_verified && {SALES}", True),
        ("ends_with(email, '@example.test')", True),
        ("identities[0].connection == 'people'", True),
    ],
)
def test_only_a_user_for_whom_the_scope_is_true_is_in_the_scope(scope: str, expected: bool) -> None:
    document = {
        "email": "anna@example.test",
        "email_verified": True,
        "blocked": False,
        "app_metadata": {"department": "Sales"},
        "identities": [{"connection": "people"}],
    }
    assert is_in_scope(document, scope) is expected


@pytest.mark.parametrize(("event_type", "level"), [("user.created", "info"), ("user.updated", "warning"), ("user.deleted", "warning")])
def test_an_event_of_a_user_outside_the_scope_is_skipped_without_a_request(scoped: ScopedAction, event_type: str, level: str) -> None:
    with misbehaving_server(by_verb()) as server:
        outcome = run(scoped(server), event_type, {"app_metadata": {"department": "Support"}})
        assert server.received == []
    assert (outcome.status, outcome.reason) == ("skipped", "outside the scope")
    assert [(line["level"], line["message"]) for line in outcome.log_lines] == [(level, "outside the scope")]


def test_a_scope_that_fails_for_the_user_fails_the_delivery_without_a_request(scoped: ScopedAction) -> None:
    with misbehaving_server(by_verb()) as server:
        with pytest.raises(DataFailure, match="neither true nor false"):
            run(scoped(server, "app_metadata.department"), "user.updated", {"app_metadata": {"department": "Sales"}})
        assert server.received == []


def test_events_of_a_user_who_has_left_the_scope_do_not_change_the_account(
    tenant: Tenant, database_connection: Connection, scoped: ScopedAction
) -> None:
    with misbehaving_server(by_verb(POST=reply(201, user("7")), GET=listing())) as server:
        stream = stream_of(scoped(server))
        anna = person(database_connection, "Sales")
        assert deliver(tenant, stream) == [("user.created", "delivered")]
        assert [request.verb for request in server.received] == ["POST"]

        update_user(tenant_id=tenant.pk, user_id=anna.user_id, changes={"app_metadata": {"department": "Support"}})
        delete_user(tenant_id=tenant.pk, user_id=anna.user_id)
        assert deliver(tenant, stream)[1:] == [("user.updated", "skipped"), ("user.deleted", "skipped")]
        assert len(server.received) == 1
    assert set(Delivery.objects.filter(stream_id=stream.pk, state="skipped").values_list("reason", flat=True)) == {"outside the scope"}


def previewed(action: Action, anna: User) -> Preview:
    return mapping_preview(draft_setup(action), user_id=anna.user_id, operation="create")


def test_the_preview_and_the_run_on_demand_show_that_a_user_is_outside_the_scope(
    tenant: Tenant, database_connection: Connection, scoped: ScopedAction
) -> None:
    anna = person(database_connection, "Support")
    with misbehaving_server(by_verb(GET=listing())) as server:
        action = scoped(server)
        assert previewed(action, anna).is_in_scope is False
        path = f"actions/actions/{action.pk}/test"
        for dry_run in (True, False):
            asked = {"test": "user", "user_id": anna.user_id, "dry_run": dry_run}
            report = Management(tenant).post(path, {"payload": asked}).json["payload"]
            assert [(step["name"], step["state"]) for step in report["steps"]] == [
                ("connect", "ok"),
                ("scope", "failed"),
                ("look_up", "skipped"),
                ("match", "skipped"),
                ("map", "skipped"),
                ("write", "skipped"),
            ]
            assert "outside the scope" in report["summary"]
        assert server.received == []
        shown = Management(tenant).post(path, {"payload": {"test": "mapping", "user_id": anna.user_id}}).json["payload"]
        assert (shown["in_scope"], json.loads(shown["body"])["userName"]) == (False, "anna@example.test")
        update_user(tenant_id=tenant.pk, user_id=anna.user_id, changes={"app_metadata": {"department": "Sales"}})
        assert previewed(action, anna).is_in_scope is True
