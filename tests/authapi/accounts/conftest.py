"""Fixtures for login tests: a client whose users can log in, and empty in-process caches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from authapi.accounts import decoy_hashes, suspicion
from authapi.edge import buckets
from authapi.models import Client
from authapi.tenant_settings import remembered_settings
from identity.models import Connection, Tenant, User
from tests.authapi.login.conftest import login  # noqa: F401  (this fixture is used here, too)
from tests.factories.sign_in import people, person, web_client


@pytest.fixture(autouse=True)
def _fresh_memory() -> Iterator[None]:
    for memory in (remembered_settings, suspicion.remembered_suspicion, decoy_hashes._samples):
        memory.clear()
    buckets.buckets.cache_clear()
    yield
    buckets.buckets.cache_clear()


@pytest.fixture
def client(tenant: Tenant) -> Client:
    return web_client(tenant)[0]


@pytest.fixture
def connection(tenant: Tenant, client: Client) -> Connection:
    return people(tenant, client)


@pytest.fixture
def ada(connection: Connection) -> User:
    return person(connection)
