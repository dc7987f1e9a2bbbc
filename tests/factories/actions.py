"""Actions for tests, created by the product's own services."""

from __future__ import annotations

from identity.models import Tenant
from provisioning.models import Action
from provisioning.services.actions import deploy_action
from tests.factories.models.provisioning import ActionFactory


def make_deployed_action(tenant: Tenant) -> Action:
    """Create an action that event streams can use."""
    secrets = {"SCIM_BASE_URL": "https://127.0.0.1:9/v2", "SCIM_BEARER_TOKEN": "token-of-the-directory"}
    action = ActionFactory.create(tenant_id=tenant.pk, name="To the directory", secrets=secrets)
    return deploy_action(tenant_id=tenant.pk, action_id=action.pk)
