from __future__ import annotations

import pytest

from identity.models import Tenant
from provisioning.models import Action
from tests.factories.actions import make_deployed_action
from tests.management import Management
from tests.provisioning.engine.conftest import recorder, stream

__all__ = ["recorder", "stream"]


@pytest.fixture
def api(tenant: Tenant) -> Management:
    """Return a client of the management interface of `tenant` that has every scope."""
    return Management(tenant)


@pytest.fixture
def action(tenant: Tenant) -> Action:
    return make_deployed_action(tenant)
