"""Fixtures of deployed SCIM actions with a real or a faulty server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from identity.models import Tenant
from provisioning.models import Action
from provisioning.services.actions import create_action
from tests.factories.scim import TOKEN, RealServer, running_scim_server


@pytest.fixture(scope="session")
def scim_process() -> Iterator[RealServer]:
    with running_scim_server() as server:
        yield server


@pytest.fixture
def server(scim_process: RealServer) -> Iterator[RealServer]:
    """Return the real SCIM server, which has no users."""
    yield scim_process
    scim_process.clear()


@pytest.fixture
def make_action(tenant: Tenant) -> Callable[..., Action]:
    """Return a function that creates and deploys an action for the server at a URL."""

    def make(base_url: str, **more: Any) -> Action:
        secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_MAX_RETRIES": "0", **more.pop("secrets", {})}
        return create_action(tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets, deploy=True, **more)

    return make


@pytest.fixture
def action(make_action: Callable[..., Action], server: RealServer) -> Action:
    return make_action(server.base_url)
