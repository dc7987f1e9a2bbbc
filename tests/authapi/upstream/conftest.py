from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from authapi.upstream import metadata
from identity.models import Tenant
from identity.services.tenants import create_tenant
from tests.factories.provider import Login, Provider, login_at
from tests.factories.provider import provider as running_provider


@pytest.fixture(autouse=True)
def _nothing_known_of_providers() -> Iterator[None]:
    metadata.documents.clear()
    yield
    metadata.documents.clear()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


@pytest.fixture
def login(tenant: Tenant, provider: Provider) -> Login:
    return login_at(tenant, provider)


@pytest.fixture
def second_tenant(committed_db: None) -> Tenant:
    name = f"t-{secrets.token_hex(6)}"
    return create_tenant(tenant_id=name, name=name, host=f"{name}.example.test")
