"""The document of a role."""

from __future__ import annotations

from typing import Any

from identity.models import Role


def role_document(role: Role) -> dict[str, Any]:
    """Return the role as the management interface shows it."""
    owner = {"owner_id": role.organization_id} if role.organization_id else {}
    return {"id": role.pk, "name": role.name, "description": role.description, "type": role.type, **owner}


def effective_role_document(role: Role, sources: list[str]) -> dict[str, Any]:
    """Return an effective role of a user, with the sources from which the user has the role."""
    return {"id": role.pk, "name": role.name, "description": role.description, "sources": sources}
