"""The OpenAPI document, and the page that displays the document."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from authapi.management_scopes import MANAGEMENT_SCOPES
from config.api import management_urls, openapi_document
from events.record.catalogue import EVENT_TYPES
from foundation.api.operations import Lifecycle, Schema
from identity.hosts import forget_hosts
from identity.models import Tenant
from tests.management import request

METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture
def document() -> Schema:
    found: Schema = orjson.loads(openapi_document())
    return found


def operations(document: Schema) -> list[Schema]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def test_the_document_has_a_version_and_base_path(document: Schema) -> None:
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


def test_every_operation_has_a_unique_id_and_a_life_cycle_and_known_scopes(document: Schema) -> None:
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


def test_every_reference_resolves(document: Schema) -> None:
    names = re.findall(r'"\$ref":"#/components/schemas/(\w+)"', orjson.dumps(document).decode())
    assert set(names) == document["components"]["schemas"].keys() & set(names)


def test_request_bodies_allow_no_unknown_members(document: Schema) -> None:
    bodies = [operation["requestBody"] for operation in operations(document) if "requestBody" in operation]
    assert bodies
    for body in bodies:
        kinds = set(body["content"])
        assert kinds in ({"application/json", "application/x-www-form-urlencoded"}, {"application/json"}, {"multipart/form-data"})
        schema = next(iter(body["content"].values()))["schema"]
        name = schema.get("items", schema)["$ref"].rpartition("/")[2]
        shape = document["components"]["schemas"][name]
        # A body that is a list of texts has no members; its schema lists the allowed texts.
        assert shape.get("enum") or shape["additionalProperties"] is False


def schema_of(answer_or_body: Schema) -> Schema:
    found: Schema = answer_or_body["content"]["application/json"]["schema"]
    return found


def test_the_document_describes_every_format_of_a_list(document: Schema) -> None:
    paths = document["paths"]
    array, page, taken = schema_of(paths["/users"]["get"]["responses"]["200"])["oneOf"]
    assert array == schema_of(paths["/users-by-email"]["get"]["responses"]["200"])
    assert array == {"type": "array", "items": {"$ref": "#/components/schemas/User"}}
    # A page with totals is not in the checkpoint format, and the checkpoint format has no totals.
    assert "total" in page["required"]
    assert taken["properties"].keys() == {"users", "next"}
    assert taken["additionalProperties"] is False
    assert schema_of(paths["/groups"]["get"]["responses"]["200"])["properties"].keys() == {"groups", "next"}


def test_a_body_that_is_a_list_is_described_only_as_json(document: Schema) -> None:
    body = document["paths"]["/connections/{id}/clients"]["patch"]["requestBody"]
    assert list(body["content"]) == ["application/json"]
    assert schema_of(body) == {"type": "array", "items": {"$ref": "#/components/schemas/ClientStatus"}, "minItems": 1}


def test_ids_with_a_known_format_have_a_pattern(document: Schema) -> None:
    found = {
        (path, parameter["name"]): parameter["schema"]
        for path, operations in document["paths"].items()
        for parameter in operations.get("get", {}).get("parameters", ())
        if parameter["in"] == "path"
    }
    group = "^grp_[1-9A-HJ-NP-Za-km-z]{14,22}$"
    assert found["/users/{id}/roles", "id"] == {"type": "string", "minLength": 1, "pattern": r"\|"}
    assert found["/organizations/{id}/members/{user_id}/roles", "user_id"] == {"type": "string", "minLength": 1, "pattern": r"\|"}
    assert found["/organizations/{id}/groups/{group_id}/roles", "group_id"] == {"type": "string", "minLength": 1, "pattern": group}
    assert found["/event-streams/{id}", "id"] == {"type": "string", "minLength": 26, "maxLength": 26}
    assert found["/event-streams/{id}/deliveries/{event_id}", "event_id"]["pattern"] == "^evt_[a-zA-Z0-9]{22}$"
    assert found["/resource-servers/{id}", "id"] == {"type": "string", "minLength": 1}


def test_bounds_of_parameters_and_bodies_are_described(document: Schema) -> None:
    def parameter(path: str, name: str) -> Schema:
        return next(found["schema"] for found in document["paths"][path]["get"]["parameters"] if found["name"] == name)

    components = document["components"]["schemas"]
    assert components["RoleToCreate"]["properties"]["name"]["minLength"] == 1
    assert components["OrganizationToCreate"]["properties"]["metadata"]["maxProperties"] == 25
    assert components["OrganizationToCreate"]["properties"]["metadata"]["additionalProperties"] == {"type": "string"}
    assert "database" in components["ConnectionToCreate"]["properties"]["strategy"]["enum"]
    assert components["EventStreamToCreate"]["required"] == ["destination", "subscriptions"]
    assert parameter("/users", "per_page")["minimum"] == 0
    assert parameter("/roles", "per_page")["minimum"] == 1
    assert "email:-1" in parameter("/users", "sort")["enum"]
    assert parameter("/users/{id}/effective-roles/sources/groups", "role_id")["minLength"] == 1


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


def test_the_document_needs_no_token_and_is_rate_limited(tenant: Tenant) -> None:
    answer = request("GET", "/api/v2/openapi.json", "", {"host": f"{tenant.pk}.example.test"}, b"")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.json["info"]["version"] == "2.0"
    assert "x-ratelimit-remaining" in answer.headers


def test_the_api_browser_exists_only_on_the_platform_host(tenant: Tenant) -> None:
    page = request("GET", "/api/docs", "", {"host": "localhost"}, b"")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    elsewhere = [request("GET", path, "", {"host": f"{tenant.pk}.example.test"}, b"") for path in ("/api/docs", "/api/docs/openapi.json")]
    assert [answer.status for answer in elsewhere] == [404, 404]


def test_the_api_browser_loads_nothing_from_other_hosts(committed_db: None) -> None:
    page = request("GET", "/api/docs", "", {"host": "localhost"}, b"").body.decode()
    sources = re.findall(r'<(?!a )[a-z]+ [^>]*(?:src|href)="([^"]+)"', page)
    assert len(sources) >= 4
    assert "<script>" not in page
    for source in sources:
        path, _, query = source.replace("&amp;", "&").partition("?")
        assert path.startswith("/"), source
        assert request("GET", path, query, {"host": "localhost"}, b"").status == 200, source
    assert request("GET", "/api/docs/openapi.json", "", {"host": "localhost"}, b"").json["info"]["version"] == "2.0"


def test_the_api_browser_first_explains_how_to_get_a_token(tenant: Tenant, settings: Any) -> None:
    page = request("GET", "/api/docs", "", {"host": "localhost:8123"}, b"").body.decode()
    assert page.index("Get a token") < page.index('id="swagger-ui"')
    assert "/admin/authapi/client/add/?kind=machine" in page
    assert "https://TENANT_DOMAIN/oauth/token" in page
    settings.LOCALHOST_TENANT = tenant.pk
    forget_hosts()
    page = request("GET", "/api/docs", "", {"host": "localhost:8123"}, b"").body.decode()
    forget_hosts()
    assert "http://localhost:8123/oauth/token" in page
    assert "audience=http://localhost:8123/api/v2/" in page
    assert "TENANT_DOMAIN" not in page


def test_the_api_browser_uses_the_dark_mode_without_inline_script_or_style(committed_db: None) -> None:
    answer = request("GET", "/api/docs", "", {"host": "localhost"}, b"")
    page = answer.body.decode()
    assert re.findall(r"<style|<script(?![^>]*src=)| style=| on[a-z]+=", page) == []
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    script = (Path(__file__).parents[2] / "static" / "theme" / "api_browser.js").read_text()
    assert "theme/api_browser.js" in page
    assert "prefers-color-scheme: dark" in script
    assert "dark-mode" in script
