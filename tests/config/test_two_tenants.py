"""An id of another tenant, in a path or a body, gets the answer of an unknown id from every operation, and changes nothing."""

from __future__ import annotations

import re

import orjson
import pytest
from django.urls import get_resolver
from pytest_django.fixtures import Settings

from authapi.api.neutral_table import ABSENT
from authapi.services.clients import create_client
from authapi.views import HOT_ENDPOINTS
from authapi.views.legacy_endpoints import LEGACY_ENDPOINTS
from authapi.views.routes import sign_in_urls
from config.asgi import routes
from identity.models import Tenant
from tests.config.two_tenants import (
    FIXED,
    UNKNOWN,
    Call,
    Ids,
    bodies,
    calls,
    ids_of,
    make_other_tenant,
    names_rows,
    rows_but_log_of,
    rows_of,
)
from tests.management import Management, request, segment

CALLS = list(calls())
# These deletions give the same answer whether or not the row exists, because clients repeat them.
IDEMPOTENT = {
    "users/{id}",
    "connections/{id}",
    "clients/{id}",
    "clients/{id}/credentials/{credential_id}",
    "resource-servers/{id}",
    "client-grants/{id}",
    "grants/{id}",
    "custom-domains/{id}",
    "device-credentials/{id}",
    "token-exchange-profiles/{id}",
    "event-streams/{id}",
    "organizations/{id}/client-grants/{grant_id}",
    "organizations/{id}/connections/{connection_id}",
    "organizations/{id}/enabled_connections/{connection_id}",
}


@pytest.fixture
def other(committed_db: None) -> Tenant:
    return make_other_tenant()


def named(call: Call) -> str:
    return f"{call.method} {call.path}"


def last_of(call: Call) -> str:
    return call.parameters[-1][0]


def test_every_parameter_and_every_body_is_listed_in_this_file() -> None:
    for call in CALLS:
        fixed = sum(f"{{{name}}}" in call.path for name in FIXED)
        assert len(call.parameters) + fixed == call.path.count("{") or "identities" in call.path, named(call)
        assert call.body is None or call.body in bodies(dict.fromkeys([*UNKNOWN, "connection name"], "one")), named(call)
    assert len(CALLS) >= 90


def test_every_url_of_the_resolver_is_an_operation_of_the_document() -> None:
    """The cases below are generated from the document, so the document must contain every URL."""
    described = {(method, f"api/v2/{path}") for method, path in ((call.method, call.path) for call in CALLS)}
    served, others = set(), set()
    for url in get_resolver().url_patterns:
        route = re.sub(r"<\w+:(\w+)>", r"{\1}", str(url.pattern))
        methods = getattr(getattr(url, "callback", None), "actions", {})
        others |= set() if methods else {route}
        served |= {(method.upper(), route) for method in methods if method != "head"}
    assert served == described
    # URLs without operations: the admin, and the redirect to it; documents that are equal for all tenants; the view for unknown paths,
    # which reads no row; and the pages of end users, which need secrets. Each of these URLs has its own test with two tenants.
    pages = {re.sub(r"<\w+:(\w+)>", r"{\1}", str(url.pattern)) for url in sign_in_urls()}
    assert others == {"", "admin/", "api/v2/openapi.json", "^api/v2(?:/.*)?$", "api/docs", "api/docs/openapi.json"} | pages


def test_every_endpoint_outside_django_is_listed_in_this_file() -> None:
    found = {str(route.pattern) for route in routes("all").routes}
    # An exported file needs a sealed link (`identity/api/test_jobs.py`). The live stream needs a session of staff
    # (`test_admin_two_tenants.py`).
    naming = {"exports/<str:name>", "admin/events/live/<str:tenant>/stream"}
    assert found - naming == {
        "api/v2/events",
        "metrics",
        "",
        *(address.removeprefix("/") for address in (*HOT_ENDPOINTS, *LEGACY_ENDPOINTS)),
    }


@pytest.fixture(autouse=True)
def _many_calls_a_second(settings: Settings) -> None:
    # Each test sends more requests than the rate limit allows. Other tests cover the limits.
    settings.RATE_LIMITS_ENABLED = False


def test_an_id_of_another_tenant_gets_the_answer_of_an_unknown_id(tenant: Tenant, other: Tenant) -> None:
    api = Management(tenant)
    own, foreign = ids_of(tenant, "own"), ids_of(other, "foreign")
    before, mine = rows_of(other), rows_but_log_of(tenant)
    for call in CALLS:
        for name, kind in call.parameters:
            answer, unknown = (
                call.send(api, own, replaced={name: replacement}, body_ids=own) for replacement in (foreign[kind], UNKNOWN[kind])
            )
            is_idempotent = call.method == "DELETE" and call.path in IDEMPOTENT and name == last_of(call)
            assert answer.status == (204 if is_idempotent else 404), (named(call), name, answer.body)
            assert (answer.status, answer.body) == (unknown.status, unknown.body), (named(call), name)
    assert rows_of(other) == before
    assert rows_but_log_of(tenant) == mine


def test_an_id_of_another_kind_is_not_found(tenant: Tenant, other: Tenant) -> None:
    api = Management(tenant)
    own, foreign = ids_of(tenant, "own"), ids_of(other, "foreign")
    before, mine = rows_of(other), rows_but_log_of(tenant)
    for call in CALLS:
        for name, kind in call.parameters:
            kinds = [other_kind for other_kind in sorted(UNKNOWN) if other_kind != kind]
            for sent in (foreign[kinds[0]], foreign[kinds[-1]]):
                answer = call.send(api, own, replaced={name: sent}, body_ids=own)
                allowed = {204, 400, 404} if call.method == "DELETE" else {400, 404}
                assert answer.status in allowed, (named(call), name, sent)
    assert rows_of(other) == before
    assert rows_but_log_of(tenant) == mine


def test_ids_in_a_body_are_searched_only_in_the_own_tenant(tenant: Tenant, other: Tenant) -> None:
    api = Management(tenant)
    own, foreign = ids_of(tenant, "own"), ids_of(other, "foreign")
    before, mine = rows_of(other), rows_but_log_of(tenant)
    naming = [call for call in CALLS if call.body and names_rows(call.body)]
    assert len(naming) >= 25
    for call in naming:
        answer, unknown = (call.send(api, own, replaced={}, body_ids=ids) for ids in (foreign, _unknown(own)))
        # A removed item need not exist. An added item must exist.
        assert answer.status in ({204} if call.method == "DELETE" else {400, 404}), (named(call), answer.body)
        assert answer.status == unknown.status, named(call)
    assert rows_of(other) == before
    assert rows_but_log_of(tenant) == mine


def _unknown(own: Ids) -> Ids:
    return {
        **UNKNOWN,
        "connection name": "nowhere",
        "action": own["action"].translate(str.maketrans("0123456789abcdef", "123456789abcdef0")),
    }


def test_lists_contain_no_rows_of_another_tenant_and_its_tokens_are_refused(tenant: Tenant, other: Tenant) -> None:
    foreign = ids_of(other, "foreign")
    api, stranger = Management(tenant), Management(other)
    email = stranger.get(f"users/{segment(foreign['user'])}").json["email"]
    # A tenant has a theme or a mail provider only after it has created one.
    never_there = {row.path for row in ABSENT} | {"branding/themes/default", "emails/provider"}
    required = {
        "users-by-email": {"email": email},
        "user-blocks": {"identifier": email},
        "refresh-tokens": {"user_id": foreign["user"]},
    }
    for call in CALLS:
        if call.method == "GET" and "{" not in call.path:
            answer = api.get(call.path, required.get(call.path, {}))
            shown = answer.body.decode()
            assert answer.status == (404 if call.path in never_there else 200), named(call)
            assert [value for value in foreign.values() if f'"{value}"' in shown] == [], named(call)
    crossed = api.call("GET", "users", headers={"authorization": f"Bearer {stranger.token}"})
    assert crossed.status == 401


def test_the_token_endpoint_treats_a_client_of_another_tenant_as_unknown(tenant: Tenant, other: Tenant) -> None:
    client, secret = create_client(tenant_id=other.pk, name="foreign", is_global=True)
    host = Management(tenant).host

    def asked(client_id: str) -> tuple[int, bytes]:
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret, "audience": f"http://{host}/api/v2/"}
        answer = request("POST", "/oauth/token", "", {"host": host, "content-type": "application/json"}, orjson.dumps(form))
        return answer.status, answer.body

    assert asked(client.client_id) == asked(UNKNOWN["client"])
    assert asked(client.client_id)[0] == 401
