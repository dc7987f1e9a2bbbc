"""Create, change and delete organizations."""

from __future__ import annotations

import re
from typing import Any

from foundation.database.transactions import unit_of_work
from foundation.json_values import merged
from identity.models import (
    Group,
    GroupMember,
    Job,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
    Role,
)
from identity.services.deletions import deletion_of, refuse_if_being_deleted
from identity.services.failures import Invalid, NotFound
from identity.services.groups import empty_groups
from identity.services.relations import delete_relations
from identity.services.roles import empty_roles
from identity.services.saving import validated_save
from identity.services.tenant_life import refuse_in_closing_tenant

EDITABLE = ("name", "display_name", "branding", "metadata", "extras")
_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}")
_COLOURS = frozenset({"primary", "page_background"})
_METADATA_KEYS = 25


@unit_of_work
def create_organization(*, tenant_id: str, name: str, **fields: Any) -> Organization:
    """Create an organization. Raises `Invalid`, or `AlreadyExists` for a taken name."""
    _check(fields)
    refuse_in_closing_tenant(tenant_id)
    organization = Organization(tenant_id=tenant_id, name=name, **fields)
    organization.extras = merged({}, organization.extras)
    validated_save(organization)
    return organization


@unit_of_work
def update_organization(*, tenant_id: str, organization_id: str, changes: dict[str, Any]) -> Organization:
    """Replace the named fields. Maps are replaced as a whole, but `extras` are merged. Raises `NotFound`, `Invalid` or `AlreadyExists`."""
    organization = locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    _check(changes)
    for name, value in changes.items():
        setattr(organization, name, merged(organization.extras, value) if name == "extras" else value)
    if changes:
        validated_save(organization, fields=list(changes))
    return organization


def _empty(organization: Organization, limit: int) -> int:
    """Delete up to `limit` relations of the organization, then its groups, then its roles."""
    here = organization.tenant_id
    return (
        delete_relations(tenant_id=here, organization=organization, limit=limit)
        or empty_groups(Group.objects.of(here).filter(organization=organization), limit)
        or empty_roles(Role.objects.of(here).filter(organization=organization), limit)
    )


def _count(organization: Organization) -> dict[str, int]:
    here = organization.tenant_id
    return {
        "members": OrganizationMember.objects.of(here).filter(organization=organization).count(),
        "roles of members": OrganizationMemberRole.objects.of(here).filter(organization=organization).count(),
        "roles of groups": OrganizationGroupRole.objects.of(here).filter(organization=organization).count(),
        "connections": OrganizationConnection.objects.of(here).filter(organization=organization).count(),
        "groups": Group.objects.of(here).filter(organization=organization).count(),
        "roles of its own": Role.objects.of(here).filter(organization=organization).count(),
        "members of its groups": GroupMember.objects.of(here).filter(group__organization=organization).count(),
    }


ORGANIZATION_DELETION = deletion_of(
    Organization, Job.Type.ORGANIZATION_DELETION, missing="No organization found by that id or name.", empty=_empty, count=_count
)


def delete_organization(*, tenant_id: str, organization_id: str) -> Job | None:
    """Delete an organization, after its relations, groups and roles. Raises `NotFound`.

    For a large organization, returns the job that continues.
    """
    return ORGANIZATION_DELETION.start(tenant_id=tenant_id, key=organization_id)


def locked_organization(*, tenant_id: str, organization_id: str) -> Organization:
    """Return the organization with its row locked until the transaction ends. Raises `NotFound` or `BeingDeleted`."""
    organization = Organization.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=organization_id).first()
    if organization is None:
        raise NotFound("No organization found by that id or name.")
    refuse_if_being_deleted(organization)
    return organization


def _check(fields: dict[str, Any]) -> None:
    errors = {name: ["Unknown field."] for name in fields if name not in EDITABLE}
    metadata = fields.get("metadata") or {}
    if len(metadata) > _METADATA_KEYS or not all(isinstance(value, str) for value in metadata.values()):
        errors["metadata"] = [f"At most {_METADATA_KEYS} keys, each with a text."]
    problem = _branding_problem(fields.get("branding") or {})
    if problem:
        errors["branding"] = [problem]
    if errors:
        raise Invalid(errors)


def _branding_problem(branding: dict[str, Any]) -> str | None:
    if set(branding) - {"logo_url", "colors"}:
        return "Only the members logo_url and colors are allowed."
    logo = branding.get("logo_url")
    if logo is not None and not (isinstance(logo, str) and logo.startswith("https://")):
        return "The member logo_url must start with https://."
    colours = branding.get("colors")
    if colours is None:
        return None
    if not isinstance(colours, dict) or set(colours) != _COLOURS:
        return "The member colors must have exactly two members, primary and page_background."
    if not all(isinstance(value, str) and _COLOUR.fullmatch(value) for value in colours.values()):
        return "A color is # and 3 to 8 hexadecimal digits."
    return None
