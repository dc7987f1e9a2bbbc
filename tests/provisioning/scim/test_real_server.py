"""The SCIM action creates, updates and deletes users on a real SCIM server, as its specification requires."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioning.mapping.schemas import ENTERPRISE_USER
from provisioning.scim.refusals import Conflict
from tests.depth import sized
from tests.factories.scim import RealServer
from tests.factories.scim_runs import ANNA, run_event

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


def sent(ran: Any) -> list[str]:
    return [exchange["verb"] for exchange in ran.exchanges]


def changed(**changes: Any) -> dict[str, Any]:
    return {**ANNA, **changes}


def test_a_created_user_has_every_mapped_attribute(scim_server: RealServer) -> None:
    ran = run_event(scim_server.base_url, "user.created", changed(user_metadata={"phone": "+4712345678"}))
    found = scim_server.user("database|anna")
    assert ran.reason == "created"
    assert sent(ran) == ["POST"]
    assert found is not None
    assert ran.result is not None
    assert ran.result.detail == {"user_id": "database|anna", "scim_id": found["id"]}
    assert {name: found[name] for name in found if name not in ("id", "meta")} == {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "externalId": "database|anna",
        "userName": "anna@example.test",
        "active": True,
        "name": {"givenName": "Anna", "familyName": "Berg", "formatted": "Anna Berg"},
        "displayName": "Anna Berg",
        "nickName": "anna",
        "emails": [{"value": "anna@example.test", "type": "work", "primary": True}],
        "phoneNumbers": [{"value": "+4712345678", "type": "work", "primary": True}],
    }


@pytest.mark.parametrize(("mode", "verb"), [("put", "PUT"), ("patch", "PATCH"), ("patch_per_attribute", "PATCH")])
def test_an_update_is_a_lookup_and_one_write_in_every_mode(scim_server: RealServer, mode: str, verb: str) -> None:
    run_event(scim_server.base_url)
    ran = run_event(
        scim_server.base_url, "user.updated", changed(email="new@example.test", name="Anna Ny", blocked=True), options={"update_mode": mode}
    )
    found = scim_server.user("database|anna")
    assert ran.reason == "updated"
    assert sent(ran) == ["GET", verb]
    assert found is not None
    assert (found["userName"], found["active"], found["displayName"]) == ("new@example.test", False, "Anna Ny")
    assert found["emails"] == [{"value": "new@example.test", "type": "work", "primary": True}]
    assert found["name"] == {"givenName": "Anna", "familyName": "Berg", "formatted": "Anna Ny"}


@pytest.mark.parametrize(("mode", "kept"), [("put", False), ("patch", True), ("patch_per_attribute", True)])
def test_an_emptied_attribute_is_cleared_by_put_and_kept_by_patch(scim_server: RealServer, mode: str, kept: bool) -> None:
    run_event(scim_server.base_url)
    run_event(scim_server.base_url, "user.updated", changed(nickname=None), options={"update_mode": mode})
    found = scim_server.user("database|anna")
    assert found is not None
    assert ("nickName" in found) is kept


def test_an_update_per_attribute_removes_an_empty_attribute_if_its_mapping_row_requires_it(scim_server: RealServer) -> None:
    rows = [
        {"path": "externalId", "source": "user_id"},
        {"path": "userName", "source": "email"},
        {"path": "nickName", "source": "nickname", "if_empty": "remove"},
    ]
    run_event(scim_server.base_url)
    run_event(scim_server.base_url, "user.updated", changed(nickname=""), options={"update_mode": "patch_per_attribute"}, mapping=rows)
    found = scim_server.user("database|anna")
    assert found is not None
    assert "nickName" not in found
    assert found["displayName"] == "Anna Berg"


@pytest.mark.parametrize("mode", ["put", "patch", "patch_per_attribute"])
def test_the_enterprise_extension_is_written_in_every_mode(scim_server: RealServer, mode: str) -> None:
    run_event(scim_server.base_url)
    document = changed(app_metadata={"department": "Tours", "manager_id": "26118915", "employee_number": 701})
    ran = run_event(scim_server.base_url, "user.updated", document, options={"update_mode": mode, "enterprise": True})
    found = scim_server.user("database|anna")
    assert ran.reason == "updated"
    assert found is not None
    assert found[ENTERPRISE_USER]["department"] == "Tours"
    assert found[ENTERPRISE_USER]["employeeNumber"] == "701"
    assert found[ENTERPRISE_USER]["manager"]["value"] == "26118915"


def test_a_deleted_user_is_looked_up_and_deleted_even_without_an_email(scim_server: RealServer) -> None:
    run_event(scim_server.base_url)
    ran = run_event(scim_server.base_url, "user.deleted", {"user_id": "database|anna"})
    assert ran.reason == "deleted"
    assert sent(ran) == ["GET", "DELETE"]
    assert scim_server.users() == []


def test_deleting_a_missing_user_succeeds(scim_server: RealServer) -> None:
    ran = run_event(scim_server.base_url, "user.deleted")
    assert ran.result is not None
    assert (ran.result.status, ran.reason, sent(ran)) == ("skipped", "no user to delete", ["GET"])
    assert [line["level"] for line in ran.lines] == ["info"]


def test_updating_a_missing_user_is_skipped_with_a_warning(scim_server: RealServer) -> None:
    ran = run_event(scim_server.base_url, "user.updated")
    assert (ran.reason, sent(ran), scim_server.users()) == ("no user to update", ["GET"], [])
    assert [line["message"] for line in ran.lines if line["level"] == "warning"] == ["update skipped: no matching user, upsert is off"]


def test_a_missing_user_is_created_with_one_post_if_upsert_is_enabled(scim_server: RealServer) -> None:
    ran = run_event(scim_server.base_url, "user.updated", options={"upsert": True})
    assert (ran.reason, sent(ran)) == ("created-from-update", ["GET", "POST"])
    assert scim_server.user("database|anna") is not None


@pytest.mark.parametrize("event_type", ["user.created", "user.updated"])
def test_a_user_without_a_value_for_the_user_name_is_skipped_with_a_warning(scim_server: RealServer, event_type: str) -> None:
    ran = run_event(scim_server.base_url, event_type, changed(email=None))
    assert ran.result is not None
    assert (ran.result.status, ran.reason, ran.exchanges) == ("skipped", "missing userName", [])
    assert [line["level"] for line in ran.lines] == ["warning", "info"]


def test_an_event_delivered_twice_creates_one_user(scim_server: RealServer) -> None:
    run_event(scim_server.base_url)
    ran = run_event(scim_server.base_url)
    assert (ran.reason, sent(ran), len(scim_server.users())) == ("duplicate delivery", ["POST", "GET"], 1)


def test_a_second_attempt_looks_the_user_up_before_it_sends_a_post(scim_server: RealServer) -> None:
    run_event(scim_server.base_url)
    ran = run_event(scim_server.base_url, attempt=2)
    assert (ran.reason, sent(ran)) == ("created by an earlier attempt", ["GET"])
    assert ran.result is not None
    assert ran.result.status == "delivered"


def test_a_user_name_that_a_foreign_account_has_causes_a_data_failure(scim_server: RealServer) -> None:
    stranger = scim_server.add(userName="anna@example.test", externalId="hr|17", displayName="Somebody else")
    ran = run_event(scim_server.base_url)
    assert isinstance(ran.failed, Conflict)
    assert (ran.failed.kind, ran.failed.status, ran.failed.scim_type) == ("data", 409, "uniqueness")
    assert scim_server.users() == [stranger]


def test_adoption_links_an_account_that_has_the_verified_address_and_no_key(scim_server: RealServer) -> None:
    existing = scim_server.add(userName="Anna@example.test", displayName="From the old directory")
    ran = run_event(scim_server.base_url, options={"adopt_on_conflict": True})
    found = scim_server.user("database|anna")
    assert ran.reason == "adopted"
    assert found is not None
    assert (found["id"], found["displayName"]) == (existing["id"], "Anna Berg")
    assert any("adopting" in line["message"] for line in ran.lines)


@pytest.mark.parametrize(
    ("held_by", "document"),
    [({"externalId": "hr|17"}, ANNA), ({}, changed(email_verified=False)), ({}, {k: v for k, v in ANNA.items() if k != "email_verified"})],
)
def test_adoption_requires_an_unlinked_account_and_a_verified_address(
    scim_server: RealServer, held_by: dict[str, str], document: dict[str, Any]
) -> None:
    existing = scim_server.add(userName="anna@example.test", **held_by)
    ran = run_event(scim_server.base_url, "user.created", document, options={"adopt_on_conflict": True})
    assert isinstance(ran.failed, Conflict)
    assert scim_server.users() == [existing]


@pytest.mark.parametrize("user_id", ODD_IDS)
def test_a_user_with_special_characters_in_its_id_is_written_correctly(scim_server: RealServer, user_id: str) -> None:
    bystander = scim_server.add(userName="bystander", externalId="database|bystander")
    document = changed(user_id=user_id)
    assert run_event(scim_server.base_url, "user.created", document).reason == "created"
    assert run_event(scim_server.base_url, "user.updated", changed(user_id=user_id, name="New")).reason == "updated"
    found = scim_server.user(user_id)
    assert found is not None
    assert found["displayName"] == "New"
    assert run_event(scim_server.base_url, "user.deleted", document).reason == "deleted"
    assert scim_server.users() == [bystander]


@given(user_id=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60).filter(str.strip))
@settings(max_examples=sized(10, deep=40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_user_id_matches_only_its_own_account(scim_server: RealServer, user_id: str) -> None:
    scim_server.clear()
    scim_server.add(userName="bystander", externalId=user_id + "x")
    assert run_event(scim_server.base_url, "user.created", changed(user_id=user_id)).reason == "created"
    ran = run_event(scim_server.base_url, "user.deleted", {"user_id": user_id})
    assert ran.reason == "deleted"
    assert [user["externalId"] for user in scim_server.users()] == [user_id + "x"]


def test_a_wrong_token_is_a_configuration_failure(scim_server: RealServer) -> None:
    ran = run_event(scim_server.base_url, secrets={"SCIM_BEARER_TOKEN": "wrong"})
    assert (ran.failed.kind, ran.failed.status, len(ran.exchanges)) == ("configuration", 401, 1)


def test_a_stopped_server_is_a_transient_failure(scim_server: RealServer) -> None:
    ran = run_event("http://127.0.0.1:1/v2")
    assert (ran.failed.kind, ran.failed.status, len(ran.exchanges)) == ("transient", None, 2)
    assert ran.exchanges[0]["failure"]
