"""The setting `DATABASE_STRATEGY` is changed although connections with the old value exist.

Every process refuses to start, and the error names both values.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from config.celery import refuse_unsuitable_database
from config.server.lifespan import lifespan
from config.settings import base
from identity.checks import check_database_strategy
from identity.models import Connection, Tenant
from identity.services.connections import create_connection
from identity.services.database_strategy import StrategyChanged, refuse_changed_strategy, written_strategy

# Parts of the error. The check may find a connection of another test first. The strategy of that connection is "database", too.
NAMED = ("DATABASE_STRATEGY is 'people'", "written with 'database'", "set DATABASE_STRATEGY=database again")


@pytest.fixture
def changed(tenant: Tenant, settings: Settings) -> None:
    create_connection(tenant_id=tenant.pk, name="people", strategy="database")
    settings.DATABASE_STRATEGY = "people"
    settings.CHECK_DATABASE_STRATEGY = base.CHECK_DATABASE_STRATEGY


def test_only_existing_connections_with_another_database_strategy_prevent_a_start(tenant: Tenant, settings: Settings) -> None:
    own = Connection.all_tenants.filter(tenant_id=tenant.pk)
    create_connection(tenant_id=tenant.pk, name="corp", strategy="samlp")
    settings.DATABASE_STRATEGY = "people"
    assert written_strategy(own) == ""
    create_connection(tenant_id=tenant.pk, name="people", strategy="people")
    assert written_strategy(own) == ""
    settings.DATABASE_STRATEGY = "database"
    assert written_strategy(own) == "people"


@pytest.mark.usefixtures("changed")
def test_the_error_names_the_stored_and_the_configured_strategy() -> None:
    with pytest.raises(StrategyChanged) as refusal:
        refuse_changed_strategy()
    assert all(text in str(refusal.value) for text in NAMED)
    (error,) = check_database_strategy(databases=["default"])
    assert (error.id, error.msg) == ("identity.E001", str(refusal.value))


@pytest.mark.usefixtures("changed")
def test_no_demo_data_is_written_with_a_changed_strategy() -> None:
    with pytest.raises(CommandError) as refusal:
        call_command("seed_demo")
    assert all(text in str(refusal.value) for text in NAMED)


@pytest.mark.usefixtures("changed")
def test_a_worker_refuses_to_start_with_a_changed_strategy() -> None:
    with pytest.raises(SystemExit) as refusal:
        refuse_unsuitable_database()
    assert all(text in str(refusal.value) for text in NAMED)


@pytest.mark.usefixtures("changed")
def test_a_web_process_refuses_to_start_with_a_changed_strategy() -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(lifespan({"type": "lifespan"}, receive, send))
    assert [message["type"] for message in sent] == ["lifespan.startup.failed"]
    assert all(text in sent[0]["message"] for text in NAMED)
