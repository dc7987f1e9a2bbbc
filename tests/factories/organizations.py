"""Roles, groups and organizations for tests, made through the services that the product uses."""

from __future__ import annotations

from itertools import count
from typing import Any

from identity.models import Group, Organization, Role, Tenant
from identity.services.groups import create_group
from identity.services.organizations import create_organization
from identity.services.roles import create_role

_numbers = count()


def make_role(tenant: Tenant, name: str = "", **fields: Any) -> Role:
    """Create a role of the tenant, with what the test cares about."""
    return create_role(tenant_id=tenant.pk, name=name or f"role-{next(_numbers)}", **fields)


def make_group(tenant: Tenant, name: str = "", **fields: Any) -> Group:
    """Create a group of the tenant, with what the test cares about."""
    return create_group(tenant_id=tenant.pk, name=name or f"group-{next(_numbers)}", **fields)


def make_organization(tenant: Tenant, name: str = "", **fields: Any) -> Organization:
    """Create an organization, with what the test cares about."""
    return create_organization(tenant_id=tenant.pk, name=name or f"organization-{next(_numbers)}", **fields)
