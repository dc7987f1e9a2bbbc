"""Every address of the management interface with every id of another tenant: unknown, and nothing changes."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest
from django.db import connection as database

from config.api import management_urls
from identity.models import Tenant
from identity.services.tenants import create_tenant
from provisioning.models import Action
from tests.factories.actions import make_deployed_action
from tests.factories.identity import make_connection, make_user
from tests.management import Management, segment

# An id that nobody has, of the form of each kind.
UNKNOWN = {"user": "database|ffffffffffffffffffffffff", "connection": "con_ffffffffffffffff", "stream": "est_ffffffffffffffffffffff"}
# A body that each operation would accept for a row of its own tenant.
BODIES: dict[str, Any] = {"identities": {"provider": "email", "user_id": "nobody"}, "users": {"given_name": "Changed"}}
_TABLES = "SELECT table_name FROM information_schema.columns WHERE column_name = 'tenant_id' AND table_schema = 'public'"


@pytest.fixture
def other(committed_db: None) -> Tenant:
    tenant_id = f"o-{secrets.token_hex(6)}"
    return create_tenant(tenant_id=tenant_id, name=tenant_id, host=f"{tenant_id}.example.test")


def ids_of(tenant: Tenant) -> dict[str, str]:
    """Make one row of each kind and return their ids."""
    people = make_connection(tenant_id=tenant.pk, name="people")
    user = make_user(connection=people, identifier="shared")
    body = {
        "subscriptions": [{"event_type": "user.created"}],
        "destination": {"type": "action", "configuration": {"action_id": str(make_deployed_action(tenant).pk)}},
    }
    stream = Management(tenant).post("event-streams", body).json["id"]
    return {"user": user.user_id, "connection": people.pk, "stream": stream}


def rows_of(tenant: Tenant) -> dict[str, list[Any]]:
    """Return every row of the tenant in every table."""
    with database.cursor() as cursor:
        cursor.execute(_TABLES)
        tables = sorted(row[0] for row in cursor.fetchall())
        found = {}
        for table in tables:
            cursor.execute(f'SELECT row::text FROM "{table}" row WHERE tenant_id = %s ORDER BY 1', [tenant.pk])  # noqa: S608
            found[table] = cursor.fetchall()
    return found


def calls() -> list[tuple[str, str]]:
    """Return method and pattern of every operation that takes an id."""
    return [
        (method.upper(), str(url.pattern).removeprefix("api/v2/"))
        for url in management_urls()
        for method in getattr(url.callback, "actions", {})
        if "<segment:id>" in str(url.pattern) and method != "head"
    ]


def test_an_id_of_another_tenant_is_as_unknown_as_one_that_nobody_has(tenant: Tenant, other: Tenant) -> None:
    api = Management(tenant)
    # The other tenant's user has the same id as none of ours, and its names are those of ours.
    make_connection(tenant_id=tenant.pk, name="people")
    foreign = ids_of(other)
    before = rows_of(other)
    assert len(calls()) >= 11
    for method, pattern in calls():
        for kind, foreign_id in foreign.items():
            answers = []
            for sent_id in (foreign_id, UNKNOWN[kind]):
                path = re.sub(r"<segment:(provider|user_id)>", "shared", pattern.replace("<segment:id>", segment(sent_id)))
                body = next((body for name, body in BODIES.items() if name in pattern), {"display_name": "Changed"})
                if "event-streams" in pattern:
                    body = {"name": "Changed"}
                answers.append(api.call(method, path, body=None if method in ("GET", "DELETE") else body))
            foreign_answer, unknown_answer = answers
            # Clients repeat deletes, so what is not there is 204; ids of another kind may be refused by their form.
            assert foreign_answer.status in ({204, 400, 404} if method == "DELETE" else {400, 404}), (method, pattern, kind)
            assert (foreign_answer.status, foreign_answer.body) == (unknown_answer.status, unknown_answer.body), (method, pattern, kind)
    assert rows_of(other) == before


def test_what_a_body_names_is_looked_for_in_the_own_tenant_alone(tenant: Tenant, other: Tenant) -> None:
    api = Management(tenant)
    foreign = ids_of(other)
    own = make_user(connection=make_connection(tenant_id=tenant.pk, name="own"))
    before = rows_of(other)
    assert api.post("users", {"connection": "people", "email": "a@example.test", "password": "Correct-horse-7"}).status == 400
    link = {"provider": "database", "user_id": foreign["user"]}
    assert api.post(f"users/{segment(own.user_id)}/identities", link).status == 404
    assert api.post(f"users/{segment(own.user_id)}/identities", link | {"connection_id": foreign["connection"]}).status == 404
    stream = {
        "subscriptions": [{"event_type": "user.created"}],
        "destination": {"type": "action", "configuration": {"action_id": str(Action.objects.of(other.pk).get().pk)}},
    }
    assert api.post("event-streams", stream).status == 400
    assert rows_of(other) == before


def test_lists_and_tokens_end_at_the_tenant(tenant: Tenant, other: Tenant) -> None:
    ids_of(other)
    api, stranger = Management(tenant), Management(other)
    assert (api.get("users").json, api.get("connections").json) == ([], [])
    assert api.get("event-streams").json == {"eventStreams": []}
    assert api.get("users-by-email", {"email": stranger.get("users").json[0]["email"]}).json == []
    crossed = api.call("GET", "users", headers={"authorization": f"Bearer {stranger.token}"})
    assert crossed.status == 401
