"""Creates the APIs of a tenant, and checks their settings. An API is the audience of tokens."""

from __future__ import annotations

from typing import Any

from authapi.details.types import MEMBER, problems_of
from authapi.management_scopes import MANAGEMENT_SCOPES
from authapi.models import ApiResource
from authapi.models.resources import MAX_SCOPES
from authapi.tokens.claims import MANAGEMENT_PATH
from authapi.tokens.keys import forget_published_after_commit
from foundation.database.transactions import lock_rows, unit_of_work
from identity.hosts import scheme
from identity.models import CustomDomain, Tenant
from identity.services.failures import Invalid
from identity.services.saving import validated_save

_SHARED = "HS256"
FACTORS_PATH = "mfa/"
FACTORS_SCOPES = {
    "enroll": "Enroll second factors",
    "read:authenticators": "See second factors",
    "remove:authenticators": "Remove second factors",
}
_SHORTEST_SECRET = 16
TOO_MANY_SCOPES = f"An API has at most {MAX_SCOPES} permissions."
_SECRET_NEEDED = f"HS256 needs a secret of {_SHORTEST_SECRET} characters or more. The secret must not be a key in PEM."


class TenantHasNoDomain(RuntimeError):
    """The tenant has no canonical domain. The identifier of its management interface contains this domain."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def ensure_management_api(tenant_id: str) -> ApiResource:
    """Return the tenant's system API, the management interface. Creates it if it is missing."""
    found = ApiResource.objects.of(tenant_id).filter(is_system=True).first()
    return found or _create_management_api(tenant_id)


@unit_of_work
def _create_management_api(tenant_id: str) -> ApiResource:
    lock_rows(Tenant, [tenant_id])
    found = ApiResource.objects.of(tenant_id).filter(is_system=True).first()
    if found is not None:
        return found
    domains = CustomDomain.objects.of(tenant_id).filter(verified_at__isnull=False)
    host = domains.order_by("-is_canonical", "created_at").values_list("host", flat=True).first()
    if host is None:
        raise TenantHasNoDomain
    resource = ApiResource(
        tenant_id=tenant_id,
        identifier=f"{scheme()}://{host}/api/v2/",
        name="Management interface",
        scopes=[{"value": value, "description": text} for value, text in MANAGEMENT_SCOPES.items()],
        is_system=True,
    )
    resource.save()
    return resource


@unit_of_work
def ensure_factors_api(tenant_id: str) -> None:
    """Create the API with which users manage second factors, `{issuer}mfa/` (contract 4.4).

    The API is not created if it exists already, or if the tenant has no domain.
    """
    try:
        management = ensure_management_api(tenant_id)
    except TenantHasNoDomain:
        # The identifier contains a domain. A tenant without a domain cannot issue tokens, so it does not need the API.
        return
    identifier = management.identifier.removesuffix(MANAGEMENT_PATH) + FACTORS_PATH
    lock_rows(Tenant, [tenant_id])
    if not ApiResource.objects.of(tenant_id).filter(identifier=identifier).exists():
        scopes = [{"value": value, "description": text} for value, text in FACTORS_SCOPES.items()]
        create_api_resource(tenant_id=tenant_id, identifier=identifier, name="Second factors of users", scopes=scopes)


@unit_of_work
def create_api_resource(
    *,
    tenant_id: str,
    identifier: str,
    name: str = "",
    scopes: list[dict[str, str]] | None = None,
    token_lifetime: int | None = None,
    token_dialect: str = ApiResource.Dialect.ACCESS_TOKEN,
    settings: dict[str, Any] | None = None,
    signing_secret: str | None = None,
) -> ApiResource:
    """Create an API; `identifier` is the audience of its tokens and never changes. Raises `Invalid`, `AlreadyExists`.

    `signing_secret` signs its tokens if the algorithm is HS256.
    """
    resource = ApiResource(
        tenant_id=tenant_id,
        identifier=identifier,
        name=name,
        scopes=scopes or [],
        token_lifetime=token_lifetime,
        token_dialect=token_dialect,
        settings=settings or {},
    )
    check_scopes(resource)
    set_signature(resource, signing_secret)
    check_detail_types(resource)
    validated_save(resource)
    return resource


def check_detail_types(resource: ApiResource) -> None:
    """Refuse a type of authorization details if it cannot be used to check requests."""
    problems = problems_of(resource.settings.get(MEMBER) or ())
    if problems:
        raise Invalid({MEMBER: problems})


def check_scopes(resource: ApiResource) -> None:
    """Refuse a scope that is listed twice, and too many scopes."""
    if len(set(resource.scope_values)) != len(resource.scope_values):
        raise Invalid({"scopes": ["Each value once."]})
    if len(resource.scopes) > MAX_SCOPES:
        raise Invalid({"scopes": [TOO_MANY_SCOPES]})


def set_signature(resource: ApiResource, signing_secret: str | None) -> None:
    """Store the secret that signs the tokens of an API. Refuses HS256 without a secret, and a secret with another algorithm.

    Tokens for the management interface cannot be signed with a secret, because every holder of the secret could make such tokens.
    """
    forget_published_after_commit(resource.tenant_id)
    if resource.settings.get("signing_alg") != _SHARED:
        if signing_secret:
            raise Invalid({"signing_secret": ["A secret can only be set for the algorithm HS256."]})
        resource.set_signing_secret("")
        return
    if resource.is_system:
        raise Invalid({"signing_alg": ["Tokens for the management interface are signed with the key of the tenant."]})
    if signing_secret is not None:
        if len(signing_secret) < _SHORTEST_SECRET or "-----BEGIN" in signing_secret:
            raise Invalid({"signing_secret": [_SECRET_NEEDED]})
        resource.set_signing_secret(signing_secret)
    if not resource.sealed_signing_secret:
        raise Invalid({"signing_secret": [_SECRET_NEEDED]})
