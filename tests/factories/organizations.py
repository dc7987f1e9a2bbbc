"""Roles, groups and organizations for tests, created by the product's own services."""

from __future__ import annotations

from typing import Any

from identity.models import Group, Organization, Role, Tenant
from tests.factories.models.identity import GroupFactory, OrganizationFactory, RoleFactory


def make_role(tenant: Tenant, name: str = "", **fields: Any) -> Role:
    """Create a role of the tenant with these fields."""
    return RoleFactory.create(tenant_id=tenant.pk, **_named(name), **fields)


def make_group(tenant: Tenant, name: str = "", **fields: Any) -> Group:
    """Create a group of the tenant with these fields."""
    return GroupFactory.create(tenant_id=tenant.pk, **_named(name), **fields)


def make_organization(tenant: Tenant, name: str = "", **fields: Any) -> Organization:
    """Create an organization with these fields."""
    return OrganizationFactory.create(tenant_id=tenant.pk, **_named(name), **fields)


def _named(name: str) -> dict[str, str]:
    return {"name": name} if name else {}
