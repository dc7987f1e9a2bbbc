from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.urls import resolve
from pytest_django.fixtures import Settings

from config.api import openapi_document
from config.upstream.reasons import REASONS
from config.upstream.table import OPERATIONS, Entry, Kind, table, unbuilt_at
from identity.models import Tenant
from tests.config.two_tenants import calls
from tests.factories.identity import make_connection, make_user
from tests.management import Management, request

# An id in the format that the first part of a path requires, so that the request is not refused because of its format.
IDS = {"users": "database%7Cffffffffffffffffffffffff", "groups": "grp_ffffffffffffffffffffff"}
UNBUILT = [entry for entry in table() if entry.kind in (Kind.REFUSED, Kind.PLANNED)]
ROUTES_PAST_DJANGO = {("GET", "events")}


def address(entry: Entry) -> str:
    return entry.path.replace("{}", IDS.get(entry.segments[0], "x"))


def test_every_operation_is_in_the_table_once_under_one_name() -> None:
    entries = table()
    places, names = Counter((entry.method, entry.path) for entry in entries), Counter(entry.name for entry in entries if entry.name)
    assert [place for place, count in places.items() if count > 1] == []
    assert [name for name, count in names.items() if count > 1] == []
    assert len(names) == len(OPERATIONS.read_text().splitlines()) >= 490


def test_the_openapi_document_contains_exactly_the_served_operations_of_the_table() -> None:
    described = {(call.method, "/".join("{}" if part.startswith("{") else part for part in call.path.split("/"))) for call in calls()}
    assert b'"/events"' in openapi_document()
    here = {(entry.method, entry.path) for entry in table() if entry.kind in (Kind.SERVED, Kind.NEUTRAL, Kind.ADDITION)}
    assert here == described | ROUTES_PAST_DJANGO


def test_every_served_operation_has_an_endpoint_with_its_method() -> None:
    for entry in table():
        if entry.kind in (Kind.SERVED, Kind.NEUTRAL) and (entry.method, entry.path) not in ROUTES_PAST_DJANGO:
            assert entry.method.lower() in resolve(f"/api/v2/{address(entry)}").func.actions, entry  # type: ignore[attr-defined]


def test_every_missing_operation_has_a_reason_that_is_a_sentence() -> None:
    assert [entry for entry in UNBUILT if not (entry.reason.endswith(".") and len(entry.reason.split()) > 3)] == []
    assert [entry for entry in table() if entry.kind in (Kind.SERVED, Kind.ADDITION) and entry.reason] == []


def test_every_reason_belongs_to_an_operation_of_the_client_libraries() -> None:
    names = [f"{line.split()[2]}." for line in OPERATIONS.read_text().splitlines()]
    assert [prefix for prefix in REASONS if not any(name.startswith(f"{prefix}.") for name in names)] == []


@pytest.fixture
def api(tenant: Tenant, settings: Settings) -> Management:
    settings.RATE_LIMITS_ENABLED = False
    return Management(tenant)


def test_every_missing_operation_answers_that_it_is_not_supported(api: Management) -> None:
    for entry in UNBUILT:
        body: dict[str, Any] | None = None if entry.method in ("GET", "DELETE") else {}
        answer = api.call(entry.method, address(entry), body=body)
        assert (answer.status, answer.json.get("errorCode")) == (404, "operation_not_supported"), (entry, answer.body)
        assert answer.json["message"].startswith(f"{entry.method} /{entry.path} is not supported")
        assert answer.json["message"].endswith(entry.reason)


def test_a_reserved_word_instead_of_an_id_is_not_read_as_an_id(api: Management) -> None:
    # Other operations at the path still accept the word, because every text can be the identifier of an API.
    made = api.post("resource-servers", {"identifier": "search"})
    assert made.status == 201
    for path in ("clients/search", "resource-servers/search", "client-grants/search", "organizations/search"):
        for method in ("GET", "HEAD"):
            assert api.call(method, path, query={"q": "name:x"}).status == 404
        assert api.get(path).json["errorCode"] == "operation_not_supported"
    assert api.patch("resource-servers/search", {"name": "Search"}).json["name"] == "Search"
    assert api.get("clients/nothing").json["errorCode"] == "inexistent_client"


def test_an_unknown_path_gets_a_plain_404_and_a_wrong_method_gets_405(api: Management) -> None:
    unknown = api.get("nothing/at/all")
    assert (unknown.status, "errorCode" in unknown.json) == (404, False)
    assert api.get("guardian/factors/sms/nothing").json == unknown.json
    assert api.call("PUT", "device-credentials", body={}).status == 405
    assert unbuilt_at("GET", "/api/v2/users//authentication-methods") is None


def test_a_request_without_a_token_does_not_learn_why_an_operation_is_missing(tenant: Tenant) -> None:
    for method, path in (("GET", "clients/search"), ("POST", "device-credentials"), ("GET", "hooks")):
        answer = request(method, f"/api/v2/{path}", "", {"host": f"{tenant.pk}.example.test"}, b"")
        assert (answer.status, "errorCode" in answer.json) == (401, False)


def test_a_key_for_a_device_of_an_unknown_user_is_refused_and_not_stored(api: Management, tenant: Tenant) -> None:
    make_user(connection=make_connection(tenant_id=tenant.pk, name="people"))
    body = {"device_name": "Phone", "type": "public_key", "value": "AAAA", "device_id": "1"}
    answer = api.post("device-credentials", body)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert api.get("device-credentials", {"type": "public_key"}).json == []
