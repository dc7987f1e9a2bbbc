"""The profile of a user for assertions: the document of the user, and further members to which mappings refer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from authapi.protocols.saml.settings import SamlSettings
from identity.documents.user import user_document
from identity.models import Group, Organization, User
from identity.services.effective_roles import effective_member_roles, effective_roles, groups_of


def profile_of(user: User, settings: SamlSettings, organization: Organization | None = None) -> dict[str, Any]:
    """Return the members that a mapping may name: the profile, the organization, and the names of mapped `groups` and `roles`.

    In a login for an organization, `roles` are the roles of the user in that organization only.
    """
    profile = user_document(user)
    profile.setdefault("name", user.name or user.email or user.username or user.phone_number)
    profile.update(_memberships(user, organization, settings.mappings))
    if organization is not None:
        profile |= {"org_id": organization.pk, "org_name": organization.name}
    return {name: value for name, value in profile.items() if value not in (None, "")}


def _memberships(user: User, organization: Organization | None, mapped: Collection[str]) -> dict[str, list[str]]:
    """Read the names of groups and roles only if the application maps them."""
    found: dict[str, list[str]] = {}
    if "groups" in mapped:
        groups = Group.objects.of(user.tenant_id).filter(pk__in=groups_of(user))
        found["groups"] = list(groups.order_by("name").values_list("name", flat=True))
    if "roles" in mapped:
        roles = effective_roles(user) if organization is None else effective_member_roles(user, organization.pk)
        found["roles"] = list(roles.rows(user.tenant_id).order_by("name").values_list("name", flat=True))
    return found
