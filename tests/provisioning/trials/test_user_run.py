"""Runs and dry runs that provision one user on demand. A dry run shows the changes that a run would make. A run never overtakes waiting
deliveries."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from events.models import EventStream
from identity.models import Connection, Tenant, User
from identity.services.failures import Conflict, NotFound
from identity.services.users import create_user, update_user
from provisioning.actions.setups import Setup, deployed_setup, draft_setup
from provisioning.engine import delivering, lanes, retention
from provisioning.engine.lane_holds import LaneBusy, held_lanes
from provisioning.engine.streams import create_stream
from provisioning.models import Action, Delivery, Lane, Trial
from provisioning.services.actions import update_action
from provisioning.trials.mapping_preview import mapping_preview
from provisioning.trials.trials import TrialReport
from provisioning.trials.user_run import run_for_user
from tests.factories.models.identity import UserFactory
from tests.factories.scim import RealServer, Received, Wire, misbehaving_server
from tests.management import Management
from tests.provisioning.actions.test_delivered_users import deliver
from tests.provisioning.trials.test_connection_test import ScimServer, at, states

MODES = ("put", "patch", "patch_per_attribute")


@pytest.fixture
def anna(tenant: Tenant, database_connection: Connection) -> User:
    profile = {"email": "anna@example.test", "given_name": "Anna", "family_name": "Berg", "name": "Anna Berg", "nickname": "änna"}
    return create_user(tenant_id=tenant.pk, connection=database_connection, **profile)


@pytest.fixture
def stream(action: Action) -> EventStream:
    types = ["user.created", "user.updated", "user.deleted"]
    bound = {"action_id": str(action.pk)}
    return create_stream(tenant_id=action.tenant_id, subscriptions=types, destination_type="action", destination=bound)


def deployed(action: Action) -> Setup:
    setup = deployed_setup(tenant_id=action.tenant_id, action_id=action.pk)
    assert setup is not None
    return setup


def run(action: Action, user: User, *, dry_run: bool) -> TrialReport:
    return run_for_user(deployed(action), user_id=user.user_id, actor="somebody", dry_run=dry_run)


def test_a_dry_run_shows_every_step_with_the_difference_and_writes_nothing(action: Action, anna: User, server: RealServer) -> None:
    existing = server.add(externalId=anna.user_id, userName="old@example.test", title="Boss", name={"givenName": "Anna"})
    report = run(action, anna, dry_run=True)
    assert [step.name for step in report.steps.taken] == ["connect", "scope", "look_up", "match", "map", "write"]
    assert not report.steps.first_failure, report.document
    assert at(report, "match").details == {"id": existing["id"]}
    changes = {change["path"]: (change["before"], change["after"]) for change in at(report, "write").details["changes"]}
    assert changes["userName"] == ("old@example.test", "anna@example.test")
    assert changes["title"] == ("Boss", None)
    assert changes["name.familyName"] == (None, "Berg")
    assert "name.givenName" not in changes
    assert server.user(anna.user_id) == existing
    assert Trial.objects.get(action=action).kind == "dry_run"


def test_a_patch_keeps_other_attributes_unchanged(make_action: Callable[..., Action], anna: User, server: RealServer) -> None:
    server.add(externalId=anna.user_id, userName="anna@example.test", title="Boss")
    report = run(make_action(server.base_url, options={"update_mode": "patch"}), anna, dry_run=True)
    assert "title" not in {change["path"] for change in at(report, "write").details["changes"]}


def test_a_missing_user_is_created_as_the_dry_run_predicts(action: Action, anna: User, server: RealServer) -> None:
    dry = run(action, anna, dry_run=True)
    assert (dry.summary.startswith("Would create"), server.users()) == (True, [])
    report = run(action, anna, dry_run=False)
    assert report.summary == "Done: created."
    made = server.user(anna.user_id)
    assert made is not None
    assert made["name"]["givenName"] == "Anna"
    assert run(action, anna, dry_run=True).summary == "No changes."
    kept = Trial.objects.get(pk=report.id)
    assert (kept.kind, kept.outcome, kept.user_id, kept.version, kept.actor) == ("user_run", "passed", anna.user_id, 1, "somebody")
    assert [exchange["verb"] for exchange in kept.steps[-1]["details"]["exchanges"]] == ["GET", "GET", "POST"]


def test_a_run_is_refused_while_deliveries_wait_and_a_dry_run_reports_the_deliveries(
    action: Action, stream: EventStream, database_connection: Connection, server: RealServer
) -> None:
    user = UserFactory.create(tenant_id=action.tenant_id, connection=database_connection, email="anna@example.test")
    with pytest.raises(LaneBusy):
        run(action, user, dry_run=False)
    assert server.users() == []
    dry = at(run(action, user, dry_run=True), "write")
    assert (dry.state, "1 waiting" in dry.advice) == ("warning", True)

    deliver(user.tenant, stream)
    assert run(action, user, dry_run=False).summary == "Done: updated."
    assert not Lane.objects.filter(stream_id=stream.pk).exists()


def test_no_delivery_of_a_user_starts_while_a_run_locks_the_lanes_of_the_user(
    action: Action, stream: EventStream, anna: User, database_connection: Connection
) -> None:
    deliver(anna.tenant, stream)
    key = f"user:{anna.user_id}"
    with held_lanes([stream.pk], tenant_id=action.tenant_id, key=key, seconds=30):
        update_user(tenant_id=action.tenant_id, user_id=anna.user_id, changes={"given_name": "Anne"})
        states_meanwhile = deliver(anna.tenant, stream)
        assert states_meanwhile[-1] == ("user.updated", "todo")
        assert lanes.claim_named(stream.pk, key) is None
        with pytest.raises(LaneBusy), held_lanes([stream.pk], tenant_id=action.tenant_id, key=key, seconds=30):
            pass
    delivering.deliver_lane(stream.pk, key)
    assert Delivery.objects.get(stream_id=stream.pk, event_type="user.updated").state == "delivered"


def test_the_leases_of_a_killed_process_expire_without_an_additional_attempt(action: Action, stream: EventStream, anna: User) -> None:
    deliver(anna.tenant, stream)
    key = f"user:{anna.user_id}"
    hold = held_lanes([stream.pk], tenant_id=action.tenant_id, key=key, seconds=0.0)
    hold.__enter__()
    update_user(tenant_id=action.tenant_id, user_id=anna.user_id, changes={"given_name": "Anne"})
    assert deliver(anna.tenant, stream)[-1] == ("user.updated", "delivered")
    assert Delivery.objects.get(stream_id=stream.pk, event_type="user.updated").attempts == 1
    hold.__exit__(None, None, None)


def test_a_draft_can_be_run_only_as_a_dry_run(action: Action, anna: User, server: RealServer) -> None:
    mapping = [{"path": "externalId", "source": "user_id"}, {"path": "userName", "source": "upper(email)"}]
    update_action(tenant_id=action.tenant_id, action_id=action.pk, changes={"mapping": mapping})
    draft = draft_setup(Action.objects.of(action.tenant_id).get(pk=action.pk))
    shown = run_for_user(draft, user_id="ANNA@example.test", actor="somebody", dry_run=True)
    assert json.loads(at(shown, "map").details["body"])["userName"] == "ANNA@EXAMPLE.TEST"
    with pytest.raises(Conflict, match="Deploy"):
        run_for_user(draft, user_id=anna.user_id, actor="somebody", dry_run=False)
    assert server.users() == []


def test_an_unknown_user_or_a_user_of_a_refused_connection_cannot_be_provisioned(
    make_action: Callable[..., Action], anna: User, server: RealServer
) -> None:
    action = make_action(server.base_url, secrets={"SCIM_CONNECTION_ALLOWLIST": "staff"})
    with pytest.raises(NotFound):
        run_for_user(deployed(action), user_id="database|ffffffffffffffffffffffff", actor="somebody", dry_run=True)
    report = run(action, anna, dry_run=False)
    assert (states(report)["connect"], states(report)["write"]) == ("failed", "skipped")
    assert server.users() == []


def test_another_account_with_the_same_name_is_reported_and_not_changed(action: Action, anna: User, server: RealServer) -> None:
    stranger = server.add(externalId="database|other", userName="anna@example.test")
    report = run(action, anna, dry_run=False)
    assert (states(report)["match"], states(report)["write"]) == ("ok", "failed")
    assert "409" in at(report, "write").text
    assert server.user("database|other") == stranger


def test_a_user_without_an_email_address_is_reported_as_skipped(action: Action, tenant: Tenant) -> None:
    phones = Connection.objects.of(tenant.pk).create(tenant=tenant, name="sms", strategy="sms")
    user = create_user(tenant_id=tenant.pk, connection=phones, phone_number="+15550101234")
    report = run(action, user, dry_run=True)
    assert (states(report)["look_up"], "userName" in at(report, "look_up").text) == ("failed", True)


@pytest.mark.parametrize("mode", MODES)
def test_the_previewed_request_equals_the_request_of_a_delivery_byte_for_byte(
    make_action: Callable[..., Action], tenant: Tenant, database_connection: Connection, mode: str
) -> None:
    """This is requirement 16 in the acceptance list of the provisioning contract."""
    with misbehaving_server(ScimServer()) as server:
        action = make_action(server.base_url, options={"update_mode": mode, "enterprise": True})
        stream = create_stream(
            tenant_id=tenant.pk,
            subscriptions=["user.created", "user.updated"],
            destination_type="action",
            destination={"action_id": str(action.pk)},
        )
        more: dict[str, Any] = {"app_metadata": {"department": "Räume & <b>"}, "user_metadata": {"phone": "+1555"}, "name": "Anna 🙂"}
        user = create_user(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test", **more)
        created = mapping_preview(draft_setup(action), user_id=user.user_id, operation="create")
        deliver(tenant, stream)
        update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"nickname": "änna"})
        updated = mapping_preview(draft_setup(action), user_id=user.user_id, operation="update")
        deliver(tenant, stream)
        writes = [request for request in server.received if request.verb in ("POST", "PUT", "PATCH")]
    assert [(request.verb, request.body) for request in writes] == [(shown.method, shown.body) for shown in (created, updated)]


def test_the_management_interface_has_previews_and_dry_runs_and_runs(
    action: Action, anna: User, server: RealServer, tenant: Tenant
) -> None:
    api, path = Management(tenant), f"actions/actions/{action.pk}/test"
    shown = api.post(path, {"payload": {"test": "mapping", "user_id": anna.user_id, "operation": "create"}}).json["payload"]
    assert (shown["method"], json.loads(shown["body"])["userName"]) == ("POST", "anna@example.test")
    tried = [{"path": "externalId", "source": "user_id"}, {"path": "userName", "source": "nope("}]
    refused = api.post(path, {"payload": {"test": "mapping", "user_id": anna.user_id, "mapping": tried}})
    assert (refused.status, refused.json["message"].endswith("on property mapping[1].source")) == (400, True)

    dry = api.post(path, {"payload": {"user_id": anna.user_id}}).json["payload"]
    assert (dry["outcome"], [step["name"] for step in dry["steps"]][-1], server.users()) == ("passed", "write", [])
    done = api.post(path, {"payload": {"user_id": anna.user_id, "dry_run": False}}).json["payload"]
    assert done["summary"] == "Done: created."
    assert api.get(f"actions/executions/{done['execution_id']}").status == 200
    assert api.post(path, {"payload": {"user_id": "database|ffffffffffffffffffffffff"}}).status == 404
    assert api.post(path, {"payload": {"test": "user"}}).status == 400


def test_a_run_against_a_busy_lane_gets_a_conflict_in_the_management_interface(
    action: Action, stream: EventStream, tenant: Tenant, database_connection: Connection
) -> None:
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="anna@example.test")
    answer = Management(tenant).post(f"actions/actions/{action.pk}/test", {"payload": {"user_id": user.user_id, "dry_run": False}})
    assert (answer.status, "delivered first" in answer.json["message"]) == (409, True)


def test_a_trial_is_kept_for_ten_days(action: Action, anna: User) -> None:
    kept, old = (run(action, anna, dry_run=True).id for _ in range(2))
    for identifier, days in ((kept, 9), (old, 11)):
        Trial.objects.filter(pk=identifier).update(started_at=timezone.now() - timedelta(days=days))
    retention.prune()
    assert [str(pk) for pk in Trial.objects.filter(action=action).values_list("pk", flat=True)] == [kept]


def test_a_response_with_an_invalid_shape_stops_the_dry_run(make_action: Callable[..., Action], anna: User) -> None:
    class Broken(ScimServer):
        def read(self, request: Received, identifier: str) -> Wire:
            return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"

    with misbehaving_server(Broken({"id": "1", "externalId": anna.user_id, "userName": "x"})) as server:
        report = run(make_action(server.base_url), anna, dry_run=True)
    assert (states(report)["match"], "invalid response shape" in at(report, "match").text) == ("failed", True)
