"""The contents of client grants, cached for a short time because every token request reads them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from authapi.models import ClientGrant
from foundation.memory.ttl_cache import Remembered

DELEGATION, IMPERSONATION = "delegation", "impersonation"
_REMEMBERED_SECONDS = 0.2


@dataclass(frozen=True)
class GrantTerms:
    """The contents of a client grant: its scopes, its use in organizations, and its types of authorization details.

    `organization_usage` is `deny`, `allow` or `require`. `token_exchange` applies if the client exchanges the token of a user for a new
    token: with `DELEGATION`, the new token names the client as the actor, with `IMPERSONATION` it does not.
    """

    grant_id: str
    scopes: tuple[str, ...]
    organization_usage: str
    is_for_any_organization: bool
    details_types: tuple[str, ...] = ()
    token_exchange: str = DELEGATION


def forget_grant(tenant_id: str, client_pk: int, resource_pk: str) -> None:
    """Make this process reload a changed grant at once."""
    for_clients.forget((tenant_id, client_pk, resource_pk))
    for_users.forget((tenant_id, client_pk, resource_pk))


def _load(key: tuple[str, int, str], *, subject_type: str) -> GrantTerms | None:
    tenant_id, client_pk, resource_pk = key
    grants = ClientGrant.objects.of(tenant_id).filter(client_id=client_pk, api_resource_id=resource_pk)
    grant = grants.filter(subject_type=subject_type).select_related("api_resource").first()
    if grant is None:
        return None
    usage = grant.settings.get("organization_usage") or "deny"
    is_for_any = bool(grant.settings.get("allow_any_organization"))
    types = tuple(grant.settings.get("authorization_details_types") or ())
    exchange = grant.settings.get("token_exchange") or DELEGATION
    return GrantTerms(grant.pk, grant.granted_scopes, usage, is_for_any, types, exchange)


# The cache key is the tenant, the primary key of the client, and the API. `for_clients` has the grants for the client itself, `for_users`
# the grants for its users.
for_clients: Remembered[tuple[str, int, str], GrantTerms | None] = Remembered(
    partial(_load, subject_type=ClientGrant.SubjectType.CLIENT), seconds=_REMEMBERED_SECONDS
)
for_users: Remembered[tuple[str, int, str], GrantTerms | None] = Remembered(
    partial(_load, subject_type=ClientGrant.SubjectType.USER), seconds=_REMEMBERED_SECONDS
)
