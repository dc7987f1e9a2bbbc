"""Changes of the settings of second factors. Some values are refused. Other changes take effect immediately, and only for one tenant."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from authapi.factors.settings import factor_settings, policy_of_organization
from authapi.factors.settings_changes import set_organization_policy, switch_factor, update_second_factors
from authapi.models import OrganizationSecondFactors, SecondFactorPolicy, TenantSettings
from identity.models import Tenant
from identity.services.failures import Invalid, NotFound
from tests.config.two_tenants import make_other_tenant
from tests.factories.models.authapi import ClientFactory, OrganizationSecondFactorsFactory
from tests.factories.models.identity import OrganizationFactory

_REFUSED: tuple[dict[str, Any], ...] = (
    {"shade": "red"},
    {"factors": ["otp", "carrier-pigeon"]},
    {"factors": "otp"},
    {"policy": "sometimes"},
    {"remembered_days": 0},
    {"remembered_days": 366},
    {"remembered_days": True},
    {"passkeys": "yes"},
    # No sender is configured, so codes would not arrive.
    {"factors": ["sms"]},
    {"policy": "always"},
    {"policy": "new-device", "factors": ["recovery-code"]},
)


def test_unusable_settings_are_refused_and_nothing_changes(tenant: Tenant) -> None:
    for changes in _REFUSED:
        with pytest.raises(Invalid):
            update_second_factors(tenant_id=tenant.pk, changes={"remembered_days": 7, **changes})

    assert not TenantSettings.objects.of(tenant.pk).exists()


def test_the_last_factor_cannot_be_switched_off_while_a_policy_requires_a_factor(tenant: Tenant) -> None:
    update_second_factors(tenant_id=tenant.pk, changes={"factors": ["otp", "recovery-code"], "policy": "always"})
    with pytest.raises(Invalid, match="Relax the policy first"):
        switch_factor(tenant_id=tenant.pk, factor="otp", is_on=False)
    update_second_factors(tenant_id=tenant.pk, changes={"policy": None})

    client = ClientFactory.create(tenant_id=tenant.pk, name="Bank")
    client.settings = {**client.settings, "second_factor_policy": "new-device"}
    client.save()
    with pytest.raises(Invalid, match="The application Bank"):
        switch_factor(tenant_id=tenant.pk, factor="otp", is_on=False)
    client.delete()
    row = OrganizationSecondFactorsFactory.create(tenant_id=tenant.pk, policy=SecondFactorPolicy.ALWAYS)
    with pytest.raises(Invalid, match=f"The organization {row.organization.name}"):
        switch_factor(tenant_id=tenant.pk, factor="otp", is_on=False)
    row.delete()
    switch_factor(tenant_id=tenant.pk, factor="otp", is_on=False)

    assert factor_settings(tenant.pk).kinds == ()


def test_a_change_takes_effect_immediately_and_only_for_its_tenant(tenant: Tenant) -> None:
    other = make_other_tenant()
    assert factor_settings(tenant.pk).kinds == ()
    update_second_factors(tenant_id=tenant.pk, changes={"factors": ["otp", "webauthn-roaming"], "remembered_days": 365, "passkeys": True})
    found = factor_settings(tenant.pk)

    assert found.kinds == ("webauthn-roaming", "totp")
    assert (found.remembered_for, found.has_passkeys) == (timedelta(days=365), True)
    assert factor_settings(other.pk).kinds == ()


def test_an_organization_of_another_tenant_keeps_its_policy(tenant: Tenant) -> None:
    foreign = OrganizationFactory.create(tenant_id=make_other_tenant().pk)
    own = OrganizationFactory.create(tenant_id=tenant.pk)
    with pytest.raises(NotFound):
        set_organization_policy(tenant_id=tenant.pk, organization_id=foreign.pk, policy="always")
    with pytest.raises(Invalid):
        set_organization_policy(tenant_id=tenant.pk, organization_id=own.pk, policy="often")
    assert not OrganizationSecondFactors.all_tenants.filter(organization__in=[foreign, own]).exists()

    for policy in ("always", "never"):
        set_organization_policy(tenant_id=tenant.pk, organization_id=own.pk, policy=policy)
        assert policy_of_organization(own) == policy
    set_organization_policy(tenant_id=tenant.pk, organization_id=own.pk, policy=None)
    assert policy_of_organization(own) is None
