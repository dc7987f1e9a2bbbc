"""Logins for an organization: finds the organization of a request, the members of an organization, and the connections that an organization
enables."""

from __future__ import annotations

from collections.abc import Iterable

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login.decision import Question
from authapi.models import Client
from authapi.tenant_settings import sign_in_settings
from identity.models import Connection, Organization, OrganizationConnection, OrganizationMember, User

_PREFIX = "org_"
_LONGEST = 64


def usage_of(client: Client) -> str:
    """Return whether users log in to this client with an organization: `deny`, `allow` or `require`."""
    return client.settings.get("organization_usage") or "deny"


def question_of(client: Client) -> Question | None:
    """Return the point of a login at which users of the client choose an organization; None if users do not choose."""
    behaviour, usage = client.settings.get("organization_require_behavior"), usage_of(client)
    if behaviour == "pre_login_prompt" and usage == "require":
        return Question.BEFORE_LOGIN
    # If an organization is optional, users choose only among their own organizations, so they must log in first.
    if behaviour == "post_login_prompt" and usage != "deny":
        return Question.AFTER_LOGIN
    return None


def wished_organization(client: Client, named: str) -> Organization | None:
    """Return the organization for which a client requests a login. `named` is its id or, if the tenant accepts names, its name.

    None if `named` is empty. Raises `RequestRefused` in three cases: the named organization is unknown; the client allows no organizations;
    or `named` is empty, although the client requires an organization and does not let the user choose.
    """
    usage = usage_of(client)
    if not named:
        if usage == "require" and question_of(client) is None:
            raise RequestRefused(LoginCase.ORGANIZATION_REQUIRED)
        return None
    if usage == "deny":
        raise RequestRefused(LoginCase.ORGANIZATION_NOT_ALLOWED)
    return named_organization(client.tenant_id, named)


def named_organization(tenant_id: str, named: str) -> Organization:
    """Return the organization with this id, or with this name if the tenant accepts names.

    Raises `RequestRefused` for an unknown organization.
    """
    by_name = sign_in_settings(tenant_id).takes_organization_names
    found = find_organization(tenant_id, named) if by_name or named.startswith(_PREFIX) else None
    if found is None:
        raise RequestRefused(LoginCase.UNKNOWN_ORGANIZATION)
    return found


def find_organization(tenant_id: str, named: str) -> Organization | None:
    """Return the organization with this id or this name."""
    rows = Organization.objects.of(tenant_id).filter(deletion_started_at__isnull=True)
    if named.startswith(_PREFIX):
        return rows.filter(pk=named[:_LONGEST]).first()
    return rows.filter(name=named[:_LONGEST].lower()).first()


def organizations_of(user: User, connection: Connection, *, limit: int) -> list[Organization]:
    """Return the organizations of which the user is a member and which have enabled the connection: at most `limit`, sorted by name."""
    members = OrganizationMember.objects.of(user.tenant_id).filter(user=user).values("organization_id")
    ways = OrganizationConnection.objects.of(user.tenant_id).filter(connection=connection, is_enabled=True).values("organization_id")
    rows = Organization.objects.of(user.tenant_id).filter(deletion_started_at__isnull=True)
    return list(rows.filter(pk__in=members).filter(pk__in=ways).order_by("name")[:limit])


def connections_within(organization: Organization, connections: Iterable[Connection]) -> list[Connection]:
    """Return the given connections that the organization has enabled."""
    rows = OrganizationConnection.objects.of(organization.tenant_id).filter(organization=organization, is_enabled=True)
    enabled = set(rows.values_list("connection_id", flat=True))
    return [connection for connection in connections if connection.pk in enabled]


def is_open_to(organization: Organization, user: User, connection: Connection) -> bool:
    """Tell whether the user is a member of the organization, and the organization has enabled the connection."""
    if not connections_within(organization, [connection]):
        return False
    return OrganizationMember.objects.of(organization.tenant_id).filter(organization=organization, user=user).exists()


def check_membership(organization: Organization, user: User) -> None:
    """Raise `RequestRefused` if the user is not a member."""
    if not OrganizationMember.objects.of(organization.tenant_id).filter(organization=organization, user=user).exists():
        raise RequestRefused(LoginCase.NOT_A_MEMBER, user=user.user_id, organization=organization.pk)


def joins_on_login(organization: Organization, connection: Connection) -> bool:
    """Tell whether a login through the connection makes the user a member."""
    rows = OrganizationConnection.objects.of(organization.tenant_id).filter(organization=organization, connection=connection)
    return rows.filter(is_enabled=True, assign_membership_on_login=True).exists()


def takes_sign_ups_in(organization: Organization, connection: Connection) -> bool:
    """Tell whether the organization allows its invited users to sign up at this connection."""
    rows = OrganizationConnection.objects.of(organization.tenant_id).filter(organization=organization, connection=connection)
    return rows.filter(is_enabled=True, is_signup_enabled=True).exists()
