"""Changes the settings of a tenant and its organizations for second factors and passkeys. `authapi.factors.settings` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from authapi.factors.demands import CLIENT_SETTING
from authapi.factors.kinds import EMAIL, FACTORS, KINDS, PHONE, kinds_of
from authapi.factors.messages import can_send_to
from authapi.factors.settings import DEFAULTS, factor_values, remembered_factors
from authapi.models import Client, OrganizationSecondFactors, SecondFactorPolicy, TenantSettings
from authapi.services.api_resources import ensure_factors_api
from foundation.database.transactions import after_commit, lock_rows, unit_of_work
from identity.models import Tenant
from identity.services.failures import Invalid
from identity.services.organizations import locked_organization
from identity.services.saving import validated_save

MOST_DAYS = 365
# Under these policies, every user must have a factor, so the tenant must enable at least one kind of factor.
DEMANDING = (SecondFactorPolicy.NEW_DEVICE.value, SecondFactorPolicy.ALWAYS.value)
_SWITCHES = ("remembers_browsers", "passkeys", "offers_passkeys")
_NO_SENDER = {
    PHONE: "Text messages have no sender yet. Set up the sms connection first, then enable this factor.",
    EMAIL: "Mails have no sender yet. Set up an email provider first, then enable this factor.",
}
_LAST = "The policy requires a second factor, so at least one factor must be enabled. Relax the policy first, or enable another factor."
_FIRST = "Enable a factor first: this policy requires a factor."


@unit_of_work
def update_second_factors(*, tenant_id: str, changes: Mapping[str, Any]) -> TenantSettings:
    """Replace the settings in `changes`. Their names are the keys of `authapi.factors.settings.DEFAULTS`. Null restores a default.

    Raises `Invalid` for an unknown name, an invalid value, or a newly enabled factor whose codes have no sender. Also raises `Invalid` if
    no factor would be left although the tenant, an application or an organization requires a factor.
    """
    row = _locked_row(tenant_id)
    before = factor_values(row)
    after = {**before, **{name: DEFAULTS.get(name) if value is None else value for name, value in changes.items()}}
    _check(after)
    after["factors"] = [name for name in FACTORS if name in after["factors"]]
    _require_senders(tenant_id, frozenset(after["factors"]) - frozenset(before["factors"]))
    _require_some_factor(tenant_id, before, after)
    row.second_factors = after
    validated_save(row, fields=None if row._state.adding else ["second_factors"])
    if after["factors"] and not before["factors"]:
        ensure_factors_api(tenant_id)
    after_commit(remembered_factors.forget, tenant_id)
    return row


@unit_of_work
def switch_factor(*, tenant_id: str, factor: str, is_on: bool) -> TenantSettings:
    """Enable or disable one factor of a tenant. Raises `Invalid` like `update_second_factors`."""
    row = _locked_row(tenant_id)
    others = [name for name in factor_values(row)["factors"] if name != factor]
    return update_second_factors(tenant_id=tenant_id, changes={"factors": [*others, factor] if is_on else others})


@unit_of_work
def set_organization_policy(*, tenant_id: str, organization_id: str, policy: str | None) -> None:
    """Set the policy of an organization; None removes it.

    A policy that is less strict than the policy of tenant or application has no effect. Raises `NotFound` for an unknown organization, and
    `Invalid` for an unknown policy.
    """
    organization = locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    rows = OrganizationSecondFactors.objects.of(tenant_id).filter(organization=organization)
    if policy is None:
        rows.delete()
        return
    problem = policy_problem(policy)
    if problem:
        raise Invalid({"second_factor_policy": [problem]})
    row = rows.first() or OrganizationSecondFactors(tenant_id=tenant_id, organization=organization)
    row.policy = policy
    validated_save(row)


def policy_problem(policy: Any) -> str:
    """Return the error of a policy name. Empty if the name is valid."""
    return "" if policy in SecondFactorPolicy.values else f"One of {', '.join(SecondFactorPolicy.values)}."


def _locked_row(tenant_id: str) -> TenantSettings:
    lock_rows(Tenant, [tenant_id])
    return TenantSettings.objects.of(tenant_id).first() or TenantSettings(tenant_id=tenant_id)


def _check(values: Mapping[str, Any]) -> None:
    errors = {name: ["Unknown setting."] for name in values if name not in DEFAULTS}
    factors, days = values["factors"], values["remembered_days"]
    if not isinstance(factors, list | tuple) or any(name not in FACTORS for name in factors):
        errors["factors"] = [f"Some of {', '.join(FACTORS)}."]
    if policy_problem(values["policy"]):
        errors["policy"] = [policy_problem(values["policy"])]
    errors |= {name: ["Expected true or false."] for name in _SWITCHES if not isinstance(values[name], bool)}
    if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= MOST_DAYS:
        errors["remembered_days"] = [f"1 to {MOST_DAYS} days."]
    if errors:
        raise Invalid(errors)


def _require_senders(tenant_id: str, switched_on: frozenset[str]) -> None:
    """Refuse a newly enabled factor whose codes cannot be sent. If the sender is removed later, the factor stays enabled."""
    for kind, problem in _NO_SENDER.items():
        if KINDS[kind].factor in switched_on and not can_send_to(tenant_id, kind):
            raise Invalid({"factors": [problem]})


def _require_some_factor(tenant_id: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    if kinds_of(after["factors"]):
        return
    if after["policy"] in DEMANDING:
        raise Invalid({"policy": [_FIRST]} if before["factors"] == after["factors"] else {"factors": [_LAST]})
    demanding = _demanding_other(tenant_id) if kinds_of(before["factors"]) else ""
    if demanding:
        raise Invalid(
            {"factors": [f"{demanding} requires a second factor, so at least one factor must be enabled. Relax this policy first."]}
        )


def _demanding_other(tenant_id: str) -> str:
    """Return the name of an application or organization whose own policy requires a factor; empty if no such policy exists."""
    setting = {f"settings__{CLIENT_SETTING}__in": DEMANDING}
    client = Client.objects.of(tenant_id).filter(**setting).values_list("name", flat=True).first()
    if client is not None:
        return f"The application {client}"
    rows = OrganizationSecondFactors.objects.of(tenant_id).filter(policy__in=DEMANDING)
    organization = rows.values_list("organization__name", flat=True).first()
    return f"The organization {organization}" if organization is not None else ""
