"""Unsupported features over the management interface: reads return neutral values, which say that the feature is off or has no rows.

Only neutral values can be written.
"""

from __future__ import annotations

from typing import Any

import pytest

from authapi.api.neutral import neutral_routes
from authapi.api.neutral_table import ABSENT, LISTS, SETTINGS, Form
from identity.models import Connection, Tenant
from tests.config.two_tenants import rows_but_log_of
from tests.factories.organizations import make_organization
from tests.management import Management

OTHER_VALUES: list[tuple[str, str, Any]] = [
    ("PATCH", "attack-protection/bot-detection", {"challenge_password_policy": "always"}),
    ("PATCH", "attack-protection/captcha", {"active_provider_id": "hcaptcha"}),
    ("PATCH", "risk-assessments/settings/new-device", {"remember_for": 7}),
    ("PATCH", "prompts", {"identifier_first": True}),
    ("PUT", "prompts/login/partials", {"login": {"form-content-start": "<b>"}}),
    ("PUT", "guardian/factors/phone/message-types", {"message_types": ["voice"]}),
    ("POST", "rules", {"name": "a", "script": "b"}),
    ("POST", "log-streams", {"name": "a", "type": "http"}),
    ("PUT", "branding/templates/universal-login", {"template": "<html>"}),
]


def address(path: str, owner: str = "org_ffffffffffffffff") -> str:
    """Return the path of a route, with an id of a valid format in place of each parameter."""
    places = {"prompt": "login", "language": "en", "template_name": "verify_email", "id": owner}
    for name, value in places.items():
        path = path.replace(f"<segment:{name}>", value)
    return path


@pytest.mark.parametrize(("method", "path", "body"), OTHER_VALUES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_value_that_is_not_neutral_is_refused_with_a_reason(api: Management, tenant: Tenant, method: str, path: str, body: Any) -> None:
    before = rows_but_log_of(tenant)
    answer = api.call(method, path, body=body)
    assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")
    assert answer.json["message"].startswith("Not supported: ")
    assert "c2VjcmV0" not in answer.json["message"]
    assert rows_but_log_of(tenant) == before


def test_a_value_of_the_wrong_type_is_refused_as_an_invalid_body(api: Management) -> None:
    bodies: tuple[Any, ...] = ({"monitoring_mode_enabled": "no"}, {"allowlist": "none"}, [], "text")
    for body in bodies:
        answer = api.patch("attack-protection/bot-detection", body)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), body


def test_neutral_values_are_accepted_and_change_nothing(api: Management, tenant: Tenant) -> None:
    before = rows_but_log_of(tenant)
    for row in SETTINGS:
        path = address(row.path)
        shown = api.get(path)
        assert (shown.status, shown.json) == (200, row.value), path
        neutral: tuple[Any, ...] = (shown.json, {})
        for body in neutral:
            answer = api.call(row.write.upper(), path, body=body)
            assert (answer.status, answer.json) == (200, row.value), path
    assert rows_but_log_of(tenant) == before


def test_empty_lists_are_returned_in_every_format_that_clients_request(api: Management, tenant: Tenant) -> None:
    organization = make_organization(tenant).pk
    for row in LISTS:
        path = address(row.path, organization)
        plain, page = api.get(path), api.get(path, {"page": 0, "per_page": 100, "include_totals": "true"})
        assert (plain.status, page.status) == (200, 200), path
        assert plain.json == ([] if row.form in (Form.ARRAY, Form.LISTED) else {row.key: []}), path
        if row.form is Form.LISTED:
            assert page.json == {"start": 0, "limit": 100, "total": 0, row.key: []}, path
        if row.form in (Form.LISTED, Form.TAKEN):
            assert api.get(path, {"take": 50}).json == {row.key: []}, path
            assert api.get(path, {"take": 0}).json["errorCode"] == "invalid_query_string", path


def test_lists_of_an_unknown_organization_are_not_found(api: Management) -> None:
    path = "organizations/org_ffffffffffffffff/discovery-domains"
    assert [api.get(path).status, api.post(path, {"domain": "corp.example"}).status] == [404, 404]


def test_a_resource_of_an_unsupported_feature_is_not_found(api: Management, database_connection: Connection) -> None:
    for row in ABSENT:
        if row.is_read:
            answer = api.get(address(row.path, database_connection.pk))
            assert (answer.status, answer.json["errorCode"]) == (404, "operation_not_supported"), row.path


def test_scim_configurations_of_connections_are_refused_and_unknown_connections_are_not_found(
    api: Management, database_connection: Connection
) -> None:
    known, unknown = f"connections/{database_connection.pk}/scim-configuration", "connections/con_ffffffffffffffff/scim-configuration"
    for method in ("POST", "PATCH"):
        answers = [api.call(method, path, body={"mapping": []}) for path in (known, unknown)]
        found = [(answer.status, answer.json["errorCode"]) for answer in answers]
        assert found == [(400, "operation_not_supported"), (404, "inexistent_connection")]


def test_every_operation_requires_its_scope(tenant: Tenant) -> None:
    api = Management(tenant, scope="read:users")
    for route in neutral_routes():
        for method, action in route.actions.items():
            answer = api.call(method.upper(), address(route.path), body=None if method == "get" else {})
            expected = route.endpoint.operations[action].single_scopes
            assert (answer.status, answer.json["errorCode"]) == (403, "insufficient_scope"), (method, route.path)
            assert all(scope in answer.json["message"] for scope in expected)
