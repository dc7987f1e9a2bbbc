from __future__ import annotations

import pytest

from identity.models import Connection, Tenant, User
from tests.factories.identity import make_user
from tests.management import Management


@pytest.fixture
def api(tenant: Tenant) -> Management:
    """Return a client of the management interface of `tenant` that has every scope."""
    return Management(tenant)


@pytest.fixture
def ada(database_connection: Connection) -> User:
    return make_user(connection=database_connection, email="ada@example.test")
