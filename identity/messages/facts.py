"""Variables of templates about a user and an organization: plain data without credentials."""

from __future__ import annotations

from typing import Any

from identity.models import Organization, User

_TEXTS = ("email", "name", "given_name", "family_name", "nickname", "username", "phone_number", "picture")


def user_facts(user: User, **further: Any) -> dict[str, Any]:
    """Return the `user` variable of a template: profile, metadata and the `further` facts, such as `source_ip`."""
    return {
        **{name: getattr(user, name) or "" for name in _TEXTS},
        "user_id": user.user_id,
        "email_verified": user.email_verified,
        "phone_verified": user.phone_verified,
        "user_metadata": user.user_metadata or {},
        "app_metadata": user.app_metadata or {},
        **further,
    }


def organization_facts(organization: Organization) -> dict[str, Any]:
    """Return the `organization` variable of a template."""
    return {
        "id": organization.pk,
        "name": organization.name,
        "display_name": organization.display_name or organization.name,
        "metadata": organization.metadata or {},
    }
