"""How the SCIM action decides whether to skip an event, fail or send requests, and in which order it makes its checks."""

from __future__ import annotations

from typing import Any

import pytest

from provisioning.runs.failures import Misconfigured
from tests.factories.scim import listing, misbehaving_server, reply, sequence, user
from tests.factories.scim_runs import ANNA, Ran, envelope, run_event

CREATED = sequence(reply(201, user("1")))


def run_without_requests(**more: Any) -> Ran:
    with misbehaving_server(CREATED) as server:
        ran = run_event(server.base_url, **more)
        assert server.received == []
        assert ran.exchanges == []
    return ran


@pytest.mark.parametrize("name", ["SCIM_BASE_URL", "SCIM_BEARER_TOKEN"])
def test_a_missing_secret_holds_the_stream_before_any_other_check(name: str) -> None:
    ran = run_without_requests(secrets={name: ""}, message={"type": 17})
    assert isinstance(ran.failed, Misconfigured)
    assert (ran.failed.kind, str(ran.failed)) == ("misconfigured", f"missing required secret: {name}")


@pytest.mark.parametrize(
    "message",
    [
        {"id": "evt_1", "type": "user.created"},
        {"id": "evt_1", "data": {"object": ANNA}},
        {"id": "evt_1", "type": None, "data": {"object": ANNA}},
        {"id": "evt_1", "type": "user.created", "data": {"object": [ANNA]}},
        {"id": "evt_1", "type": "user.created", "data": "text"},
        {"odd": True},
    ],
)
def test_the_log_line_of_a_skipped_malformed_event_lists_its_members(message: dict[str, Any]) -> None:
    ran = run_without_requests(message=message)
    assert ran.reason == "malformed event"
    assert [(line["level"], line["fields"]["keys"]) for line in ran.lines] == [("warning", ", ".join(sorted(message)))]


@pytest.mark.parametrize("event_type", ["user.created", "user.updated", "user.deleted", "group.created"])
def test_a_test_event_never_causes_a_request(event_type: str) -> None:
    ran = run_without_requests(message=envelope(event_type, x0purpose="test"))
    assert ran.reason == "test event"


@pytest.mark.parametrize("connection", ["staff", "People", "people1", "people2"])
def test_an_event_of_a_connection_outside_the_allow_list_is_skipped(connection: str) -> None:
    ran = run_without_requests(
        message=envelope("user.deleted", connection=connection), secrets={"SCIM_CONNECTION_ALLOWLIST": "people, partners"}
    )
    assert ran.reason == "connection not allowed"


def test_an_event_without_a_connection_is_skipped_if_there_is_an_allow_list() -> None:
    message = {**envelope("user.created"), "data": {"object": ANNA}}
    assert run_without_requests(message=message, secrets={"SCIM_CONNECTION_ALLOWLIST": "people"}).reason == "connection not allowed"


@pytest.mark.parametrize("allowed", ["people", " people ,", "partners,people", "", " , "])
def test_an_event_of_an_allowed_connection_is_processed(allowed: str) -> None:
    with misbehaving_server(CREATED) as server:
        assert run_event(server.base_url, secrets={"SCIM_CONNECTION_ALLOWLIST": allowed}).reason == "created"


def test_an_event_of_an_unsupported_type_is_skipped_with_a_log_line() -> None:
    ran = run_without_requests(message=envelope("group.member.added"))
    assert (ran.reason, [line["message"] for line in ran.lines]) == ("unsupported type", ["unsupported type ignored"])


@pytest.mark.parametrize("event_type", ["user.created", "user.updated", "user.deleted"])
def test_a_user_without_a_correlation_key_is_skipped_with_a_warning(event_type: str) -> None:
    ran = run_without_requests(event_type=event_type, document={**ANNA, "user_id": ""})
    assert ran.reason == "missing externalId"
    assert ran.lines[0]["level"] == "warning"


def test_success_writes_one_log_line_with_the_result() -> None:
    with misbehaving_server(CREATED) as server:
        ran = run_event(server.base_url)
    assert ran.lines == [
        {
            "level": "info",
            "message": "sync ok",
            "fields": {
                "type": "user.created",
                "event_id": "evt_1234567890123456789012",
                "user_id": "database|anna",
                "action": "created",
                "scim_id": "1",
            },
        }
    ]


@pytest.mark.parametrize(("options", "mapping"), [({"update_mode": "odd"}, None), ({}, [{"path": "userName"}])])
def test_an_action_with_invalid_stored_options_or_mapping_holds_the_stream(options: dict[str, Any], mapping: Any) -> None:
    assert run_without_requests(options=options, mapping=mapping).failed.kind == "misconfigured"


def test_the_mapping_of_the_tenant_determines_the_sent_members() -> None:
    rows = [{"path": "externalId", "source": "user_id"}, {"path": "userName", "source": "nickname"}, {"path": "title", "source": "'Guest'"}]
    with misbehaving_server(sequence(listing(user("1", externalId="database|anna")), reply(204))) as server:
        run_event(server.base_url, "user.updated", mapping=rows)
        assert server.received[-1].json == {
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
            "externalId": "database|anna",
            "userName": "anna",
            "title": "Guest",
        }


def test_a_required_row_without_a_value_fails_the_delivery_with_a_data_failure() -> None:
    rows = [
        {"path": "externalId", "source": "user_id"},
        {"path": "userName", "source": "email"},
        {"path": "title", "source": "title", "if_empty": "error"},
    ]
    ran = run_without_requests(mapping=rows)
    assert (ran.failed.kind, "title is empty" in str(ran.failed)) == ("data", True)
