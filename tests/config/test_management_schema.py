"""The OpenAPI document, and the page that shows it."""

from __future__ import annotations

import re

import orjson
import pytest

from authapi.scopes import MANAGEMENT_SCOPES
from config.api import management_urls, openapi_document
from events.catalogue import EVENT_TYPES
from identity.api.operations import Lifecycle, Schema
from identity.models import Tenant
from tests.management import request

METHODS = ("get", "post", "patch", "delete")


@pytest.fixture
def document() -> Schema:
    found: Schema = orjson.loads(openapi_document())
    return found


def operations(document: Schema) -> list[Schema]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def test_the_interface_carries_its_version_and_base_path(document: Schema) -> None:
    assert document["info"]["version"] == "2.0"
    assert document["servers"] == [{"url": "/api/v2"}]


def test_every_route_is_described(document: Schema) -> None:
    served = {
        (method, re.sub(r"<\w+:(\w+)>", r"{\1}", str(url.pattern).removeprefix("api/v2")))
        for url in management_urls()
        for method in getattr(url.callback, "actions", {})
        if method in METHODS
    }
    assert served | {("get", "/events")} == {(method, path) for path, found in document["paths"].items() for method in found}


def test_every_operation_has_an_id_of_its_own_a_life_cycle_and_known_scopes(document: Schema) -> None:
    found = operations(document)
    ids = [operation["operationId"] for operation in found]
    assert len(set(ids)) == len(ids)
    assert {"list_users", "create_user", "subscribe_events", "create_event_stream"} <= set(ids)
    for operation in found:
        assert operation["x-release-lifecycle"] in list(Lifecycle)
        scopes = [scope for way in operation["security"] for names in way.values() for scope in names]
        assert scopes
        assert set(scopes) <= MANAGEMENT_SCOPES.keys()
        assert {"400", "401", "403", "429"} <= operation["responses"].keys()


def test_every_reference_leads_somewhere(document: Schema) -> None:
    names = re.findall(r'"\$ref":"#/components/schemas/(\w+)"', orjson.dumps(document).decode())
    assert set(names) == document["components"]["schemas"].keys() & set(names)


def test_bodies_are_closed(document: Schema) -> None:
    bodies = [operation["requestBody"] for operation in operations(document) if "requestBody" in operation]
    assert bodies
    for body in bodies:
        assert body["content"].keys() == {"application/json", "application/x-www-form-urlencoded"}
        schema = body["content"]["application/json"]["schema"]
        name = schema.get("items", schema)["$ref"].rpartition("/")[2]
        assert document["components"]["schemas"][name]["additionalProperties"] is False


def test_the_subscription_is_described_as_a_stream(document: Schema) -> None:
    operation = document["paths"]["/events"]["get"]
    assert operation["operationId"] == "subscribe_events"
    assert operation["x-release-lifecycle"] == "Generally Available"
    assert operation["responses"].keys() == {"200", "400", "401", "403", "404", "410", "429", "503"}
    assert list(operation["responses"]["200"]["content"]) == ["text/event-stream"]
    parameters = {parameter["name"]: parameter for parameter in operation["parameters"]}
    assert parameters["from"]["schema"]["maxLength"] == 1024
    assert parameters["from_timestamp"]["schema"]["maxLength"] == 20
    assert parameters["event_type"]["schema"]["items"]["enum"] == list(EVENT_TYPES)
    assert parameters["event_type"]["explode"] is True


def test_the_document_needs_no_token_and_counts_as_a_request(tenant: Tenant) -> None:
    answer = request("GET", "/api/v2/openapi.json", "", {"host": f"{tenant.pk}.example.test"}, b"")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.json["info"]["version"] == "2.0"
    assert "x-ratelimit-remaining" in answer.headers


def test_the_browser_answers_on_the_platform_host_alone(tenant: Tenant) -> None:
    page = request("GET", "/api/docs", "", {"host": "localhost"}, b"")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    elsewhere = [request("GET", path, "", {"host": f"{tenant.pk}.example.test"}, b"") for path in ("/api/docs", "/api/docs/openapi.json")]
    assert [answer.status for answer in elsewhere] == [404, 404]


def test_the_browser_loads_nothing_from_elsewhere(committed_db: None) -> None:
    page = request("GET", "/api/docs", "", {"host": "localhost"}, b"").body.decode()
    sources = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(sources) >= 4
    assert "<script>" not in page
    for source in sources:
        path, _, query = source.replace("&amp;", "&").partition("?")
        assert path.startswith("/"), source
        assert request("GET", path, query, {"host": "localhost"}, b"").status == 200, source
    assert request("GET", "/api/docs/openapi.json", "", {"host": "localhost"}, b"").json["info"]["version"] == "2.0"
