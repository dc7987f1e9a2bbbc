"""Fixtures of the whole suite. Tests commit their data, and each test has its own tenant, so other tests do not see the data."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import hypothesis
import psycopg
import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg.pq import TransactionStatus
from pytest_django.plugin import DjangoDbBlocker, blocking_manager_key

from events.models import Head
from identity.models import Connection, Tenant
from tests.databases import migrated_test_database
from tests.django_clients import spare_repetition
from tests.factories.models.identity import ConnectionFactory, TenantFactory

# Hypothesis checks no time limits: how long it takes to generate and run an example depends on the machine, not on the tested code.
hypothesis.settings.register_profile("tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("tests")

spare_repetition()

_OPTIONS = dict(connection.settings_dict["OPTIONS"])
_database = ExitStack()
_HAS_DATABASE = pytest.StashKey[bool]()
# Number of characters of a long value in the name of a test.
_LONGEST_NAME = 60


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a case by the beginning of a long value. Workers exchange the names, so the names must be equal in all workers."""
    if not isinstance(val, str | bytes) or len(val) <= _LONGEST_NAME:
        return None
    begin = val[:_LONGEST_NAME]
    text = begin if isinstance(begin, str) else begin.decode("latin-1")
    return f"{text.encode('unicode_escape').decode()}... {len(val)} in all"


def pytest_collection_finish() -> None:
    """Exclude modules and tests from later garbage collections. Processes of the service do the same at the end of their start."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Create this worker's database before the first test that uses it, and before the time limit of that test begins."""
    if "django_db_setup" in getattr(item, "fixturenames", ()):
        _make_database(item.config)
    return (yield)


@pytest.fixture(scope="session")
def django_db_setup(request: pytest.FixtureRequest, django_test_environment: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Always create this worker's database, because the fixture of pytest-django creates it only for tests with the mark `django_db`."""
    _make_database(request.config)
    yield
    with django_db_blocker.unblock():
        _database.close()


def _make_database(config: pytest.Config) -> None:
    if _HAS_DATABASE in config.stash:
        return
    with config.stash[blocking_manager_key].unblock():
        _database.enter_context(migrated_test_database())
    config.stash[_HAS_DATABASE] = True


@receiver(connection_created)
def _keep_for_the_next_request(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Keep the connection of a long-lived thread open for the next request of the thread. `_end_of_test` gives the reason."""
    thread = threading.current_thread()
    if thread is threading.main_thread() or thread.name.startswith("authapi"):
        connection.close_at = None


@pytest.fixture
def committed_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let the test commit, without a surrounding transaction and without a flush. A new tenant per test isolates its data."""
    with django_db_blocker.unblock():
        yield
        _end_of_test()


def _end_of_test() -> None:
    """Keep the connection for the next test, because opening a connection takes as long as most tests.

    Close the connection if the test has left it in a transaction, or has changed the connection options of the settings.
    """
    held = connection.connection
    if held is None:
        return
    if (
        connection.in_atomic_block
        or held.info.transaction_status != TransactionStatus.IDLE
        or connection.settings_dict["OPTIONS"] != _OPTIONS
    ):
        connection.close()
        return
    try:
        held.execute("SELECT pg_advisory_unlock_all()")
    except psycopg.Error:
        connection.close()


@pytest.fixture
def tenant(committed_db: None) -> Tenant:
    """A new tenant `t-<random>` that is served on `<id>.example.test`, with an empty log."""
    return TenantFactory.create()


@pytest.fixture
def head(tenant: Tenant) -> Head:
    return Head.objects.get(pk=tenant.pk)


@pytest.fixture
def database_connection(tenant: Tenant) -> Connection:
    """A database connection with the name `people`."""
    return ConnectionFactory.create(tenant_id=tenant.pk, name="people")
