"""Machine tokens for one organization: finds the organization that a request means, and checks that the client's grant covers it (contract,
4.5)."""

from __future__ import annotations

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.login.organizations import named_organization
from authapi.models import Client, OrganizationClientGrant
from authapi.services.grant_terms import GrantTerms
from identity.models import Organization

_FLOW = "client_credentials"


def machine_organization(client: Client, grant: GrantTerms | None, named: str | None) -> Organization | None:
    """Return the organization that a request for a machine token names, or the client's default. Raises `RequestRefused`.

    Returns None without a query if the request names no organization and the client has no default.
    """
    usage = grant.organization_usage if grant is not None else "deny"
    if grant is None or usage == "deny":
        if named is not None:
            raise RequestRefused(LoginCase.ORGANIZATION_NOT_ALLOWED)
        return None
    wanted = named or _default(client)
    if wanted is None:
        if usage == "require":
            raise RequestRefused(LoginCase.ORGANIZATION_REQUIRED)
        return None
    organization = named_organization(client.tenant_id, wanted)
    if not grant.is_for_any_organization:
        rows = OrganizationClientGrant.objects.of(client.tenant_id).filter(organization=organization, client_grant_id=grant.grant_id)
        if not rows.exists():
            raise RequestRefused(OAuthCase.NO_GRANT_IN_ORGANIZATION, organization=organization.pk)
    return organization


def _default(client: Client) -> str | None:
    default = client.settings.get("default_organization") or {}
    return default.get("organization_id") if _FLOW in default.get("flows", ()) else None
