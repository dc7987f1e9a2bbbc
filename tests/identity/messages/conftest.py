"""Fixtures for the tests of mails and text messages: a client of the management interface, a user, and reachable loopback servers."""

from __future__ import annotations

from typing import Any

import pytest

from identity.models import Connection, Tenant, User
from tests.factories.identity import make_user
from tests.management import Management


@pytest.fixture
def api(tenant: Tenant) -> Management:
    return Management(tenant)


@pytest.fixture
def ada(database_connection: Connection) -> User:
    return make_user(connection=database_connection, email="ada@example.test", name="Ada")


@pytest.fixture
def reachable(settings: Any) -> None:
    """Allow outbound requests to loopback without TLS."""
    settings.OUTBOUND_PRIVATE_NETWORKS, settings.OUTBOUND_ALLOW_HTTP = ["127.0.0.0/8"], True
