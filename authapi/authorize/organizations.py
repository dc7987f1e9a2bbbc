"""Logins for an organization: which one a request names, who belongs to it, and through which connections people enter."""

from __future__ import annotations

from collections.abc import Iterable

from authapi.failures import Case, RequestRefused
from authapi.models import Client
from authapi.tenant_settings import sign_in_settings
from identity.models import Connection, Organization, OrganizationConnection, OrganizationMember, User

_PREFIX = "org_"
_LONGEST = 64


def asked_organization(client: Client, named: str) -> Organization | None:
    """Return the organization that a request names by id, or by name where the tenant has switched that on.

    Raises `RequestRefused` where the client takes none, needs one, or there is no such one.
    """
    usage = client.settings.get("organization_usage") or "deny"
    if not named:
        if usage == "require":
            raise RequestRefused(Case.ORGANIZATION_REQUIRED)
        return None
    if usage == "deny":
        raise RequestRefused(Case.ORGANIZATION_NOT_ALLOWED)
    return named_organization(client.tenant_id, named)


def named_organization(tenant_id: str, named: str) -> Organization:
    """Return the organization of this id, or of this name where the tenant takes names; raise `RequestRefused`."""
    rows = Organization.objects.of(tenant_id).filter(deletion_started_at__isnull=True)
    found = None
    if named.startswith(_PREFIX):
        found = rows.filter(pk=named[:_LONGEST]).first()
    elif sign_in_settings(tenant_id).takes_organization_names:
        found = rows.filter(name=named[:_LONGEST].lower()).first()
    if found is None:
        raise RequestRefused(Case.UNKNOWN_ORGANIZATION)
    return found


def connections_within(organization: Organization, connections: Iterable[Connection]) -> list[Connection]:
    """Return those of the connections through which people enter the organization."""
    rows = OrganizationConnection.objects.of(organization.tenant_id).filter(organization=organization, is_enabled=True)
    enabled = set(rows.values_list("connection_id", flat=True))
    return [connection for connection in connections if connection.pk in enabled]


def check_membership(organization: Organization, user: User) -> None:
    """Raise `RequestRefused` unless the user is a member."""
    if not OrganizationMember.objects.of(organization.tenant_id).filter(organization=organization, user=user).exists():
        raise RequestRefused(Case.NOT_A_MEMBER, user=user.user_id, organization=organization.pk)


def joins_on_login(organization: Organization, connection: Connection) -> bool:
    """Tell whether whoever logs in through the connection becomes a member by that."""
    rows = OrganizationConnection.objects.of(organization.tenant_id).filter(organization=organization, connection=connection)
    return rows.filter(is_enabled=True, assign_membership_on_login=True).exists()
