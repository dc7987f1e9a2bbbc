"""The client never changes or deletes the account of another user, even if a faulty server answers a lookup with this account."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest

from provisioning.scim.client import if_match_of
from provisioning.scim.lookups import AmbiguousMatch, ForeignAccount, UnverifiableMatch
from tests.factories.scim import Handler, Received, Wire, by_verb, listing, misbehaving_server, reply, scim_error, sequence, user
from tests.factories.scim_runs import ANNA, Findings, Ran, run_event

CHANGES = ["user.updated", "user.deleted"]


def over(users: list[dict[str, Any]], matching: Any) -> Handler:
    """Return a server with `users`. It finds users with `matching(attribute, value, user)`. It answers writes with success, and stores
    nothing."""

    def answer(request: Received) -> Wire:
        if request.verb == "GET":
            found = re.fullmatch(r'(\w+) eq "(.*)"', request.filter)
            assert found is not None, request.filter
            return listing(*(item for item in users if matching(found[1], found[2], item)))
        return reply(204)

    return answer


def ignoring(attribute: str, value: str, item: dict[str, Any]) -> bool:
    return True


def as_pattern(attribute: str, value: str, item: dict[str, Any]) -> bool:
    return re.search(value, str(item.get(attribute, item.get("hidden", "")))) is not None


def exactly(attribute: str, value: str, item: dict[str, Any]) -> bool:
    return bool(item.get(attribute, item.get(f"hidden_{attribute}")) == value)


def run(handler: Handler, event_type: str, **more: Any) -> tuple[Ran, list[str]]:
    with misbehaving_server(handler) as server:
        ran = run_event(server.base_url, event_type, **more)
        return ran, server.lines


@pytest.mark.parametrize("event_type", CHANGES)
def test_an_account_with_another_key_does_not_match_if_the_server_ignores_filters(event_type: str) -> None:
    ran, lines = run(over([user("1", externalId="hr|1", userName="x@example.test")], ignoring), event_type)
    assert ran.reason in ("no user to update", "no user to delete")
    assert lines == ["GET /Users"]
    assert any("not trusted" in line["message"] for line in ran.lines)


@pytest.mark.parametrize("event_type", CHANGES)
def test_an_account_without_a_key_is_unverifiable_if_the_server_ignores_filters(event_type: str) -> None:
    ran, lines = run(over([user("1", userName="x@example.test")], ignoring), event_type)
    assert isinstance(ran.failed, UnverifiableMatch)
    assert ran.failed.kind == "data"
    assert "unverifiable" in str(ran.failed)
    assert set(lines) == {"GET /Users"}


@pytest.mark.parametrize("event_type", CHANGES)
def test_only_the_account_of_the_user_is_written_if_filters_are_patterns(event_type: str) -> None:
    users = [user("a", externalId="database|a", userName="a@example.test"), user("b", externalId="database|anna")]
    ran, lines = run(over(users, as_pattern), event_type)
    assert ran.result is not None
    assert ran.result.detail["scim_id"] == "b"
    assert lines[-1].endswith("/Users/b")


def test_a_match_with_only_an_id_is_refused_if_filters_are_patterns() -> None:
    ran, lines = run(over([{"id": "1", "hidden": "database|anna"}], as_pattern), "user.updated")
    assert isinstance(ran.failed, UnverifiableMatch)
    assert lines == ["GET /Users"] * 3


def test_a_match_with_only_an_id_is_accepted_after_one_test_of_the_filters() -> None:
    handler = over([{"id": "1", "hidden_externalId": "database|anna"}], exactly)
    findings = Findings()
    with misbehaving_server(handler) as server:
        first = run_event(server.base_url, "user.updated", findings=findings)
        second = run_event(server.base_url, "user.updated", findings=findings)
        assert (first.reason, second.reason) == ("updated", "updated")
        assert server.lines == ["GET /Users"] * 6 + ["PUT /Users/1", "GET /Users", "PUT /Users/1"]


def test_the_test_of_the_filters_of_one_server_is_not_valid_for_another_server() -> None:
    findings = Findings()
    handler = over([{"id": "1", "hidden_externalId": "database|anna"}], exactly)
    with misbehaving_server(handler) as first, misbehaving_server(handler) as second:
        run_event(first.base_url, "user.updated", findings=findings)
        run_event(second.base_url, "user.updated", findings=findings)
        assert second.lines == ["GET /Users"] * 6 + ["PUT /Users/1"]


@pytest.mark.parametrize("event_type", CHANGES)
def test_a_filter_on_the_key_that_returns_an_equal_user_name_proves_nothing(event_type: str) -> None:
    ran, lines = run(over([user("1", userName="anna@example.test")], ignoring), event_type)
    assert isinstance(ran.failed, UnverifiableMatch)
    assert set(lines) == {"GET /Users"}


@pytest.mark.parametrize("event_type", CHANGES)
def test_a_write_fails_at_once_if_the_server_compares_user_names_with_the_key(event_type: str) -> None:
    by_name = over([user("1", userName="database|anna")], lambda attribute, value, item: bool(item["userName"] == value))
    ran, lines = run(by_name, event_type)
    assert "compares userName" in str(ran.failed)
    assert lines == ["GET /Users"]


@pytest.mark.parametrize("event_type", CHANGES)
def test_two_resources_with_our_external_id_are_ambiguous(event_type: str) -> None:
    users = [user("1", externalId="database|anna"), user("2", externalId="database|anna")]
    ran, lines = run(over(users, exactly), event_type)
    assert isinstance(ran.failed, AmbiguousMatch)
    assert ran.failed.detail == "ids 1, 2"
    assert lines == ["GET /Users"]


def test_the_external_id_is_compared_code_point_by_code_point() -> None:
    ran, _ = run(over([user("1", externalId="DATABASE|ANNA")], ignoring), "user.updated")
    assert ran.reason == "no user to update"


def refusing_external_id(users: list[dict[str, Any]]) -> Handler:
    honest = over(users, lambda attribute, value, item: str(item.get(attribute, "")).casefold() == value.casefold())
    return lambda request: scim_error(400, "invalidFilter") if request.filter.startswith("externalId") else honest(request)


@pytest.mark.parametrize("event_type", CHANGES)
def test_the_user_name_is_searched_if_the_server_refuses_a_filter_on_the_key(event_type: str) -> None:
    with misbehaving_server(refusing_external_id([user("1", userName="anna@example.test")])) as server:
        ran = run_event(server.base_url, event_type)
        assert ran.result is not None
        assert ran.result.status == "delivered"
        filters = [request.filter for request in server.received if request.verb == "GET"]
        assert filters == ['externalId eq "database|anna"', 'userName eq "anna@example.test"']


def test_the_filter_on_the_key_is_tried_again_for_each_user() -> None:
    findings = Findings()
    with misbehaving_server(refusing_external_id([])) as server:
        for _ in range(2):
            run_event(server.base_url, "user.updated", findings=findings)
        assert [request.filter.split()[0] for request in server.received] == ["externalId", "userName"] * 2


@pytest.mark.parametrize("event_type", CHANGES)
def test_a_lookup_by_user_name_never_matches_an_account_with_another_correlation_key(event_type: str) -> None:
    handler = refusing_external_id([user("1", userName="anna@example.test", externalId="hr|1")])
    ran, lines = run(handler, event_type)
    assert isinstance(ran.failed, ForeignAccount)
    assert lines == ["GET /Users", "GET /Users"]


def test_a_user_without_a_name_cannot_be_found_if_the_filter_on_the_key_is_refused() -> None:
    ran, lines = run(refusing_external_id([]), "user.deleted", document={"user_id": "database|anna"})
    assert (ran.failed.kind, lines) == ("data", ["GET /Users"])
    assert "no userName to fall back on" in str(ran.failed)


def test_only_status_400_counts_as_a_refused_filter() -> None:
    ran, lines = run(lambda request: scim_error(403), "user.updated")
    assert (ran.failed.kind, lines) == ("configuration", ["GET /Users"])


def test_a_lookup_by_user_name_does_not_find_a_user_whose_email_address_changed() -> None:
    handler = refusing_external_id([user("1", userName="anna@example.test")])
    ran, _ = run(handler, "user.updated", document={**ANNA, "email": "new@example.test"})
    assert ran.reason == "no user to update"


def versioned(version: str) -> dict[str, Any]:
    return user("1", externalId="database|anna", userName="anna@example.test", meta={"version": version})


def honoring(base_url: str) -> Findings:
    return Findings(if_match_of(hashlib.sha256(base_url.encode()).hexdigest()[:12]))


def test_a_write_is_conditional_on_the_read_version_if_the_server_refuses_outdated_versions() -> None:
    answers = by_verb(GET=sequence(listing(versioned("W/1")), listing(versioned("W/2"))), PUT=sequence(scim_error(412), reply(204)))
    with misbehaving_server(answers) as server:
        assert run_event(server.base_url, "user.updated", findings=honoring(server.base_url)).reason == "updated"
        expected = [request.headers.get("if-match") for request in server.received if request.verb == "PUT"]
        assert expected == ["W/1", "W/2"]


def test_a_resource_that_keeps_changing_causes_a_failure_and_no_endless_loop() -> None:
    with misbehaving_server(by_verb(GET=listing(versioned("W/1")), DELETE=scim_error(412))) as server:
        ran = run_event(server.base_url, "user.deleted", findings=honoring(server.base_url))
        assert (ran.failed.status, ran.failed.kind) == (412, "data")
        assert sum(line.startswith("DELETE") for line in server.lines) == 2


def test_a_write_is_unconditional_if_the_server_never_refused_an_outdated_version() -> None:
    with misbehaving_server(by_verb(GET=listing(versioned("W/1")), PUT=reply(204))) as server:
        run_event(server.base_url, "user.updated")
        assert "if-match" not in server.received[-1].headers
