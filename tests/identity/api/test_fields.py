"""The parameters `fields` and `include_fields` of every list. A list accepts only the names of its own fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from pytest_django.fixtures import Settings
from pytest_django.plugin import DjangoDbBlocker

from authapi.api.neutral import NeutralEndpoint
from authapi.api.routes import ROUTES as AUTHAPI_ROUTES
from authapi.models import Client
from config.api import openapi_document
from foundation.api.operations import Route
from identity.api.routes import ROUTES as IDENTITY_ROUTES
from identity.models import Connection, User
from tests.factories.admin import new_tenant
from tests.factories.identity import make_connection, make_user
from tests.management import Management, segment

# Operations that return a single resource, a report or blocks. They return no list of resources, so they do not accept `fields`.
_NOT_LISTS = {
    "get_tenant_settings",
    "get_brute_force_protection",
    "get_suspicious_ip_throttling",
    "get_breached_password_detection",
    "get_job_errors",
    "list_user_blocks_by_identifier",
    "get_default_domain",
    "get_branding",
    "get_custom_text",
    "get_default_branding_theme",
    "get_connection_status",
    "list_user_enrollments",
    "list_guardian_factors",
    "list_guardian_policies",
    "get_second_factors",
    "get_organization_second_factors",
}


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[tuple[Management, dict[str, str]]]:
    """Create a tenant with a row in each list. Yield a client of the interface, and ids for the paths. The tests change no row."""
    with django_db_blocker.unblock():
        tenant = new_tenant()
        people = make_connection(tenant_id=tenant.pk, name="people")
        api = Management(tenant)
        yield api, _filled(api, people, make_user(connection=people, email="ada@example.test"))


@pytest.fixture
def api(committed_db: None, world: tuple[Management, dict[str, str]], settings: Settings) -> Management:
    settings.RATE_LIMITS_ENABLED = False
    return world[0]


@pytest.fixture
def filled(world: tuple[Management, dict[str, str]]) -> dict[str, str]:
    return world[1]


def _filled(api: Management, database_connection: Connection, ada: User) -> dict[str, str]:
    organization = api.post("organizations", {"name": "acme"}).json["id"]
    role = api.post("roles", {"name": "Reader"}).json["id"]
    group = api.post("groups", {"name": "staff", "type": "connection", "connection_id": database_connection.pk}).json["id"]
    api.post(f"groups/{group}/members", {"members": [ada.user_id]})
    api.post(f"users/{segment(ada.user_id)}/roles", {"roles": [role]})
    api.post(f"organizations/{organization}/members", {"members": [ada.user_id]})
    api.post(f"organizations/{organization}/enabled_connections", {"connection_id": database_connection.pk})
    client = api.post("clients", {"name": "Shop"}).json["client_id"]
    api.post("resource-servers", {"identifier": "https://api.example.test", "scopes": [{"value": "read"}]})
    grant = api.post("client-grants", {"client_id": client, "audience": "https://api.example.test", "scope": ["read"]}).json["id"]
    permission = {"resource_server_identifier": "https://api.example.test", "permission_name": "read"}
    api.post(f"roles/{role}/permissions", {"permissions": [permission]})
    return {
        "organization": organization,
        "role": role,
        "group": group,
        "user": segment(ada.user_id),
        "client": client,
        "connection": database_connection.pk,
        "grant": grant,
    }


LISTS = [
    ("users", "email"),
    ("users-by-email?email=ada@example.test", "email"),
    ("connections", "name"),
    ("clients", "name"),
    ("groups", "name"),
    ("roles", "name"),
    ("organizations", "name"),
    ("resource-servers", "identifier"),
    ("client-grants", "audience"),
    ("keys/signing", "kid"),
    ("groups/{group}/members", "member_type"),
    ("organizations/{organization}/members", "email"),
    ("organizations/{organization}/enabled_connections", "connection_id"),
    ("organizations/{organization}/connections", "is_enabled"),
    ("users/{user}/roles", "name"),
    ("users/{user}/organizations", "name"),
    ("users/{user}/groups", "membership_created_at"),
    ("users/{user}/permissions", "sources"),
    ("users/{user}/effective-roles", "sources"),
    ("roles/{role}/users", "email"),
    ("roles/{role}/permissions", "permission_name"),
]


def items_of(answer: Any) -> list[dict[str, Any]]:
    found = answer if isinstance(answer, list) else next(value for value in answer.values() if isinstance(value, list))
    assert found
    return list(found)


@pytest.mark.parametrize(("path", "field"), LISTS, ids=[path for path, _ in LISTS])
def test_a_list_includes_or_excludes_the_named_fields(api: Management, filled: dict[str, str], path: str, field: str) -> None:
    target, _, fixed = path.format(**filled).partition("?")
    query = dict(pair.split("=") for pair in fixed.split("&") if pair)
    kept = {"tenant"} if path == "clients" else set()
    whole = items_of(api.get(target, query).json)
    only = items_of(api.get(target, query | {"fields": field}).json)
    assert [set(item) - kept for item in only] == [{field}] * len(whole)
    others = items_of(api.get(target, query | {"fields": field, "include_fields": "false"}).json)
    assert [set(item) for item in others] == [set(item) - {field} for item in whole]


@pytest.mark.parametrize("path", [path for path, _ in LISTS])
def test_an_unknown_field_is_refused(api: Management, filled: dict[str, str], path: str) -> None:
    target, _, fixed = path.format(**filled).partition("?")
    query = dict(pair.split("=") for pair in fixed.split("&") if pair)
    answer = api.get(target, query | {"fields": "client_secret_digest"})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_query_string")
    assert "include_fields" not in answer.json["message"]


def test_a_selection_of_fields_also_applies_to_pages_and_checkpoints(api: Management, filled: dict[str, str]) -> None:
    page = api.get("roles", {"include_totals": "true", "fields": "id"}).json
    assert page["roles"] == [{"id": filled["role"]}]
    taken = api.get("organizations", {"take": 1, "fields": "id"}).json
    assert taken["organizations"] == [{"id": filled["organization"]}]


def test_the_secret_of_a_client_cannot_be_selected_as_a_field(api: Management) -> None:
    answer = api.get("clients", {"fields": "client_secret", "is_global": "true"})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_query_string")
    assert Client.objects.of(api.client.tenant_id).filter(is_global=True).exists()


def test_every_list_in_the_description_of_the_interface_allows_a_selection_of_fields() -> None:
    paths = orjson.loads(openapi_document())["paths"]
    missing = []
    for route in (*IDENTITY_ROUTES, *AUTHAPI_ROUTES):
        operation = _list_operation(route)
        if operation is None or operation in _NOT_LISTS or issubclass(route.endpoint, NeutralEndpoint):
            continue
        described = next(method for path in paths.values() for method in path.values() if method.get("operationId") == operation)
        if not {"fields", "include_fields"} <= {parameter["name"] for parameter in described.get("parameters", ())}:
            missing.append(operation)
    assert missing == []


def _list_operation(route: Route) -> str | None:
    return route.endpoint.operations["list"].id if route.actions.get("get") == "list" else None


@pytest.mark.parametrize("path", ["organizations", "groups", "connections", "client-grants", "users/{user}/groups"])
def test_a_list_in_the_checkpoint_format_refuses_any_order_except_the_order_of_creation(
    api: Management, filled: dict[str, str], path: str
) -> None:
    target = path.format(**filled)
    for sort in ("name:1", "created_at:2"):
        for form in ({"take": 1}, {"take": 1, "include_totals": "true"}):
            answer = api.get(target, {**form, "sort": sort})
            assert (answer.status, answer.json["errorCode"]) == (400, "invalid_query_string"), (path, sort, form)
    assert api.get(target, {"take": 1, "sort": "created_at:1"}).status == 200
