"""The settings of a tenant for second factors and passkeys, with defaults. `authapi.factors.settings_changes` writes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from authapi.factors.kinds import FACTORS, RECOVERY_CODE, kinds_of
from authapi.models import OrganizationSecondFactors, SecondFactorPolicy, TenantSettings
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.contexts import offered
from foundation.memory.ttl_cache import Remembered
from identity.models import Organization

# Other processes see a change after at most this time: one second.
_REMEMBERED_SECONDS = 1.0
DEFAULTS: dict[str, Any] = {
    # Without an enabled factor, no login requires a factor, regardless of the policy.
    "factors": [],
    "policy": SecondFactorPolicy.ON_REQUEST.value,
    "remembers_browsers": True,
    "remembered_days": 30,
    # Each connection has its own setting for passkeys, too (`authapi.factors.passkey_options`).
    "passkeys": False,
    # Whether a page offers to create a passkey after a login with a password.
    "offers_passkeys": True,
}


@dataclass(frozen=True)
class FactorSettings:
    """The settings as logins read them. `kinds` are the enabled second factors, strongest first."""

    kinds: tuple[str, ...]
    has_recovery_codes: bool
    policy: SecondFactorPolicy
    remembers_browsers: bool
    remembered_for: timedelta
    has_passkeys: bool
    offers_passkeys: bool


def factor_settings(tenant_id: str) -> FactorSettings:
    """Return the settings of a tenant, cached for at most a second. Reads the database on a miss."""
    return remembered_factors.get(tenant_id)


def factor_values(row: TenantSettings | None) -> dict[str, Any]:
    """Return the settings by name. Missing settings get their defaults."""
    return {**DEFAULTS, **(row.second_factors if row is not None else {})}


def policy_of_organization(organization: Organization) -> SecondFactorPolicy | None:
    """Return the policy of an organization.

    None if the organization has no policy. Then only the policies of the tenant and the application apply.
    """
    row = OrganizationSecondFactors.objects.of(organization.tenant_id).filter(organization_id=organization.pk).first()
    return SecondFactorPolicy(row.policy) if row is not None else None


def _load(tenant_id: str) -> FactorSettings:
    values = factor_values(TenantSettings.objects.of(tenant_id).first())
    factors = [name for name in FACTORS if name in values["factors"]]
    return FactorSettings(
        kinds=kinds_of(factors),
        has_recovery_codes=RECOVERY_CODE in factors,
        policy=SecondFactorPolicy(values["policy"]),
        remembers_browsers=values["remembers_browsers"],
        remembered_for=timedelta(days=values["remembered_days"]),
        has_passkeys=values["passkeys"],
        offers_passkeys=values["offers_passkeys"],
    )


remembered_factors = Remembered(_load, seconds=_REMEMBERED_SECONDS)


def offered_contexts(tenant_id: str) -> tuple[str, ...]:
    """Return the authentication contexts that a tenant offers now, strongest first."""
    settings = factor_settings(tenant_id)
    return offered(sign_in_settings(tenant_id).acr_values, has_second_factors=bool(settings.kinds) or settings.has_passkeys)
