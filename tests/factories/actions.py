"""Actions for tests, made by the services that the product uses."""

from __future__ import annotations

from identity.models import Tenant
from provisioning.models import Action
from provisioning.services.actions import create_action, deploy_action


def make_deployed_action(tenant: Tenant) -> Action:
    """Create an action that streams can be bound to."""
    secrets = {"SCIM_BASE_URL": "https://127.0.0.1:9/v2", "SCIM_BEARER_TOKEN": "token-of-the-directory"}
    action = create_action(tenant_id=tenant.pk, name="To the directory", template="scim-user-provisioning", secrets=secrets)
    return deploy_action(tenant_id=tenant.pk, action_id=action.pk)
