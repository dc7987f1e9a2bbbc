"""Lookups of the right user on third-party servers, and writes in the mode that each server supports.

The numbers in the names of tests are the numbers of rows in the table in docs/reference/scim.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from identity.models import Tenant
from provisioning.actions.setups import draft_setup
from provisioning.scim.lookups import UnverifiableMatch
from provisioning.trials.connection_test import run_connection_test
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import TOKEN, MisbehavingServer, RealServer, Received, Wire, listing, scim_error, user
from tests.factories.scim_relay import Relay
from tests.factories.scim_runs import ANNA, run_event

pytestmark = pytest.mark.peer

ODD_IDS = [
    'database|a"b',
    "database|a\\b",
    "database|a\tb",
    "database|true",
    "true",
    "database|zoë-ж-漢",
    "a&b",
    "a+b",
    "a%b",
    "a#b",
    "a b",
]
# SCIMMY 1.3.5 compares values with the escaped text of a filter, so it does not find a value with characters that must be escaped.
NEVER_FOUND = {"scimmy": {"database|a\\b", "database|a\tb"}}


def changed(**changes: Any) -> dict[str, Any]:
    return {**ANNA, **changes}


def everybody(server: RealServer) -> Callable[[Received], Wire | None]:
    """Return a function that answers every lookup with all users of the server, like a server that ignores filters."""
    return lambda request: listing(*server.users()) if request.filter else None


@pytest.mark.parametrize("mode", ["put", "patch_per_attribute"])
def test_1_changing_and_deleting_one_user_does_not_change_another_user_of_the_connection(server: RealServer, mode: str) -> None:
    first = server.add(externalId="auth0|a", userName="a@example.test")
    second = changed(user_id="auth0|b", email="b@example.test")
    assert run_event(server.base_url, "user.created", second).reason == "created"
    assert run_event(server.base_url, "user.updated", {**second, "name": "B"}, options={"update_mode": mode}).reason == "updated"
    found = server.user("auth0|b")
    assert found is not None
    assert found["displayName"] == "B"
    assert run_event(server.base_url, "user.deleted", second).reason == "deleted"
    assert server.users() == [first]


@pytest.mark.parametrize("event_type", ["user.updated", "user.deleted"])
def test_1_a_server_that_treats_a_filter_as_a_pattern_gets_no_write_to_a_foreign_account(
    server: RealServer, relay: Relay, front: MisbehavingServer, event_type: str
) -> None:
    """The server answers a lookup with all users whose keys have the same prefix as the requested key, as scimgateway does."""
    for name in "ac":
        server.add(externalId=f"auth0|{name}", userName=name)
    strangers = server.users()
    relay.refuses = everybody(server)
    ran = run_event(front.base_url, event_type, changed(user_id="auth0|zzz"))
    assert ran.reason in ("no user to update", "no user to delete")
    assert server.users() == strangers


@pytest.mark.parametrize("event_type", ["user.updated", "user.deleted"])
def test_2_a_server_that_ignores_filters_gets_no_write_to_a_foreign_account(
    server: RealServer, relay: Relay, front: MisbehavingServer, event_type: str
) -> None:
    stranger = server.add(userName="stranger@example.test")
    relay.refuses = everybody(server)
    ran = run_event(front.base_url, event_type)
    assert isinstance(ran.failed, UnverifiableMatch)
    assert "unverifiable" in str(ran.failed)
    assert server.users() == [stranger]


@pytest.mark.parametrize("user_id", ODD_IDS)
def test_3_a_change_of_a_user_with_an_unusual_key_affects_only_its_account(server: RealServer, user_id: str) -> None:
    bystander = server.add(userName="bystander", externalId="database|bystander")
    document = changed(user_id=user_id)
    assert run_event(server.base_url, "user.created", document).reason == "created"
    updated = run_event(server.base_url, "user.updated", changed(user_id=user_id, name="New"))
    deleted = run_event(server.base_url, "user.deleted", document)
    if user_id in NEVER_FOUND.get(server.name, set()):
        # The server cannot find this key. The service reports this with a warning, and does not write to another account.
        assert (updated.reason, deleted.reason) == ("no user to update", "no user to delete")
        assert sorted(found["externalId"] for found in server.users()) == sorted([user_id, "database|bystander"])
        return
    assert (updated.reason, deleted.reason) == ("updated", "deleted")
    assert server.users() == [bystander]


@pytest.mark.parametrize("mode", ["put", "patch_per_attribute"])
def test_5_an_account_is_found_by_its_key_after_a_change_of_the_email_address(server: RealServer, mode: str) -> None:
    run_event(server.base_url)
    moved = changed(email="new@example.test")
    assert run_event(server.base_url, "user.updated", moved, options={"update_mode": mode}).reason == "updated"
    found = server.user("database|anna")
    assert found is not None
    assert (found["userName"], found["emails"][0]["value"]) == ("new@example.test", "new@example.test")
    assert run_event(server.base_url, "user.deleted", moved).reason == "deleted"
    assert server.users() == []


def without_external_id(request: Received) -> Wire | None:
    return scim_error(400, "invalidFilter") if request.filter.startswith("externalId") else None


def test_5_a_changed_email_address_is_not_applied_without_a_filter_for_the_key(
    server: RealServer, relay: Relay, front: MisbehavingServer
) -> None:
    """The documented limit: if the key cannot be filtered, the service searches for the user name, which is the email address.

    After a change of the address, the service searches for the new name, but the account still has the old name.
    """
    relay.refuses = without_external_id
    run_event(front.base_url)
    assert run_event(front.base_url, "user.updated", changed(name="New")).reason == "updated"
    assert run_event(front.base_url, "user.updated", changed(email="new@example.test")).reason == "no user to update"
    found = server.user("database|anna")
    assert found is not None
    assert (found["userName"], found["displayName"]) == ("anna@example.test", "New")
    assert run_event(front.base_url, "user.deleted").reason == "deleted"
    assert server.users() == []


# The update modes that work on each server. In the mode `patch`, a PATCH has no path, and SCIMMY adds list elements to the old elements.
RIGHT_MODES = {"scim2-server": ["put", "patch", "patch_per_attribute"], "scimmy": ["put", "patch_per_attribute"]}


@pytest.mark.parametrize("mode", ["put", "patch", "patch_per_attribute"])
def test_6_modes_that_work_on_a_server_do_not_duplicate_or_corrupt_values(server: RealServer, mode: str) -> None:
    options = {"update_mode": mode, "enterprise": True}
    document = changed(app_metadata={"department": "Tours"}, user_metadata={"phone": "+4712345678"})
    run_event(server.base_url, "user.created", document, options=options)
    ran = run_event(server.base_url, "user.updated", {**document, "email": "new@example.test"}, options=options)
    found = server.user("database|anna")
    assert ran.reason == "updated"
    assert found is not None
    addresses = [entry["value"] for entry in found["emails"]]
    if mode not in RIGHT_MODES[server.name]:
        # The server answers with success although it stores a wrong value. So the write check must read the user after the write.
        assert len(addresses) > 1
        return
    assert (addresses, len(found["phoneNumbers"])) == (["new@example.test"], 1)
    assert found["urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"] == {"department": "Tours"}
    assert not [name for name in found if name.startswith("urn:") and not name.endswith(":User")]


def test_6_the_write_check_finds_the_working_modes_and_leaves_no_user(tenant: Tenant, server: RealServer) -> None:
    secrets = {"SCIM_BASE_URL": server.base_url, "SCIM_BEARER_TOKEN": TOKEN}
    action = ActionFactory.create(tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets, deploy=True)
    report = run_connection_test(draft_setup(action), actor="somebody", with_write_check=True)
    modes = {step.name: step.finding.state for step in report.steps.taken if step.name in ("put", "patch", "patch_per_attribute")}
    assert [mode for mode, state in modes.items() if state == "ok"] == RIGHT_MODES[server.name]
    assert report.findings["recommended_update_mode"] == "put"
    assert server.users() == []


@pytest.mark.parametrize("identifier", ["..", ".", "a\x00b", "x" * 10_240])
@pytest.mark.parametrize("event_type", ["user.updated", "user.deleted"])
def test_8_an_id_that_cannot_be_part_of_a_path_affects_no_account(
    server: RealServer, relay: Relay, front: MisbehavingServer, identifier: str, event_type: str
) -> None:
    bystander = server.add(userName="bystander", externalId="database|bystander")
    relay.instead["GET"] = [listing(user(identifier, externalId="database|anna"))]
    assert run_event(front.base_url, event_type).failed.kind == "data"
    assert (front.lines, server.users()) == (["GET /Users"], [bystander])


@pytest.mark.parametrize("identifier", ["a/b", "a?b#c", "a%2e%2e", "../Users"])
@pytest.mark.parametrize("event_type", ["user.updated", "user.deleted"])
def test_8_an_unusual_id_is_sent_as_one_segment_of_the_path(
    server: RealServer, relay: Relay, front: MisbehavingServer, identifier: str, event_type: str
) -> None:
    bystander = server.add(userName="bystander", externalId="database|bystander")
    relay.instead["GET"] = [listing(user(identifier, externalId="database|anna"))]
    run_event(front.base_url, event_type)
    assert front.received[1].path.count("/") == 4
    assert server.users() == [bystander]
