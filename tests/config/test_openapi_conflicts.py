"""Writes to rows that are being deleted get a conflict. The OpenAPI document describes the conflict for every operation that writes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.db import connection as database
from pytest_django.fixtures import Settings

from config.api import openapi_document
from identity.models import Tenant
from tests.config.two_tenants import calls, ids_of
from tests.management import Management

PATHS: dict[str, Any] = orjson.loads(openapi_document())["paths"]
CALLS = [call for call in calls() if call.method != "GET"]
DELETABLE = ("connection", "organization", "group", "role")


@pytest.fixture(autouse=True)
def _many_calls_a_second(settings: Settings) -> None:
    settings.RATE_LIMITS_ENABLED = False


def test_every_operation_that_writes_describes_a_conflict() -> None:
    silent = [f"{call.method} {call.path}" for call in CALLS if "409" not in PATHS[f"/{call.path}"][call.method.lower()]["responses"]]
    assert not silent
    assert "being deleted" in PATHS["/connections/{id}"]["patch"]["responses"]["409"]["description"]
    assert "409" not in PATHS["/connections/{id}"]["get"]["responses"]


def test_rows_that_are_being_deleted_refuse_writes_as_described(tenant: Tenant) -> None:
    api, ids = Management(tenant), ids_of(tenant, "own")
    with database.cursor() as cursor:
        for name in DELETABLE:
            cursor.execute(f"UPDATE identity_{name} SET deletion_started_at = now() WHERE tenant_id = %s", [tenant.pk])  # noqa: S608
    conflicts = set()
    # Deletions are requested last, because they would delete the rows of the other operations.
    for call in sorted(CALLS, key=lambda call: call.method == "DELETE"):
        answer = call.send(api, ids, replaced={}, body_ids=ids)
        assert str(answer.status) in PATHS[f"/{call.path}"][call.method.lower()]["responses"], (call, answer.status, answer.body)
        if answer.status == 409:
            conflicts.add(f"{call.method} {call.path}")
    assert conflicts >= {
        "PATCH connections/{id}",
        "PATCH organizations/{id}",
        "PATCH groups/{id}",
        "PATCH roles/{id}",
        "POST groups/{id}/members",
        "POST groups/{id}/roles",
        "POST organizations/{id}/members",
        "POST organizations",
        "POST users",
    }
