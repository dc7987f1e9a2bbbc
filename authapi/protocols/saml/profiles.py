"""The profile of a user as assertions read it: the document of the user, and what mappings ask for beside it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from authapi.protocols.saml.settings import SamlSettings
from identity.documents.user import user_document
from identity.models import GroupMember, Organization, User, UserRole


def profile_of(user: User, settings: SamlSettings, organization: Organization | None = None) -> dict[str, Any]:
    """Return what a mapping may name: the profile, `groups` and `roles` by name where they are mapped, and the organization."""
    profile = user_document(user)
    profile.setdefault("name", user.name or user.email or user.username or user.phone_number)
    profile.update(_memberships(user, settings.mappings))
    if organization is not None:
        profile |= {"org_id": organization.pk, "org_name": organization.name}
    return {name: value for name, value in profile.items() if value not in (None, "")}


def _memberships(user: User, mapped: Collection[str]) -> dict[str, list[str]]:
    """Read the names of groups and roles only where an application wants them."""
    found: dict[str, list[str]] = {}
    if "groups" in mapped:
        found["groups"] = list(_names(GroupMember, user, "group"))
    if "roles" in mapped:
        found["roles"] = list(_names(UserRole, user, "role"))
    return found


def _names(relation: type[GroupMember] | type[UserRole], user: User, of: str) -> Collection[str]:
    rows = relation.objects.of(user.tenant_id).filter(user=user)
    return list(rows.order_by(f"{of}__name").values_list(f"{of}__name", flat=True))
