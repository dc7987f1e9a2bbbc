"""Changes that cause an event of each type."""

from __future__ import annotations

from typing import Any

from identity.models import Tenant
from identity.services import connections, groups, memberships, organizations, roles, users


def tell_every_type(tenant: Tenant) -> None:
    """Cause at least one event of each of the 25 types, through the services."""
    here: dict[str, Any] = {"tenant_id": tenant.pk}
    people = connections.create_connection(**here, name="people", strategy="database")
    directory = connections.create_connection(
        **here, name="directory", strategy="samlp", options={"signInEndpoint": "https://idp.example.test"}
    )
    ada = users.create_user(
        **here,
        connection=people,
        identifier="0123456789abcdef01234567",
        email="ada@example.test",
        given_name="Ada",
        family_name="Lovelace",
        user_metadata={"phone": "+15550100"},
        app_metadata={"roles": ["reader"]},
    )
    users.block_user(**here, user_id=ada.user_id)
    role = roles.create_role(**here, name="editor")
    organization = organizations.create_organization(
        **here,
        name="acme",
        display_name="Acme",
        metadata={"tier": "gold"},
        branding={"logo_url": "https://acme.example.test/logo.svg", "colors": {"primary": "#112233", "page_background": "#ffffff"}},
    )
    organizations.update_organization(**here, organization_id=organization.pk, changes={"display_name": "Acme Corporation"})
    group = groups.create_group(**here, name="engineers", type="connection", connection_id=directory.pk, external_id="ext-1")
    groups.update_group(**here, group_id=group.pk, changes={"name": "builders"})
    inside = {**here, "organization_id": organization.pk}
    memberships.add_connection(**inside, connection_id=people.pk, organization_access_level="limited")
    flags = {"assign_membership_on_login": True, "is_signup_enabled": True}
    memberships.update_organization_connection(**inside, connection_id=people.pk, changes=flags)
    memberships.add_members(**inside, user_ids=[ada.user_id])
    memberships.assign_member_roles(**inside, user_id=ada.user_id, role_ids=[role.pk])
    memberships.assign_organization_group_roles(**inside, group_id=group.pk, role_ids=[role.pk])
    groups.add_group_members(**here, group_id=group.pk, user_ids=[ada.user_id])
    groups.assign_group_roles(**here, group_id=group.pk, role_ids=[role.pk])
    connections.update_connection(**here, connection_id=people.pk, changes={"display_name": "People"})
    groups.remove_group_roles(**here, group_id=group.pk, role_ids=[role.pk])
    groups.remove_group_members(**here, group_id=group.pk, member_ids=[ada.user_id])
    users.delete_user(**here, user_id=ada.user_id)
    groups.delete_group(**here, group_id=group.pk)
    organizations.delete_organization(**here, organization_id=organization.pk)
    connections.delete_connection(**here, connection_id=people.pk)
