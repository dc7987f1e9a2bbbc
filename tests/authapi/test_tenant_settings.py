"""Login settings: the defaults, the refusals, the value null (which restores a default), and how long a process caches settings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from authapi.models import LoginFailures, TenantSettings
from authapi.services.api_resources import create_api_resource
from authapi.services.tenant_settings import update_brute_force, update_tenant_settings
from authapi.tenant_settings import brute_force_values, remembered_settings, settings_values, sign_in_settings
from identity.models import Connection, Tenant
from identity.services.failures import Invalid, NotSupported
from tests.config.two_tenants import make_other_tenant
from tests.factories.identity import make_connection
from tests.factories.models.authapi import LoginFailuresFactory, TenantSettingsFactory


def test_a_tenant_without_settings_has_the_defaults(tenant: Tenant) -> None:
    found = sign_in_settings(tenant.pk)

    assert found.friendly_name == tenant.name
    assert (found.session_lifetime, found.idle_session_lifetime) == (timedelta(hours=168), timedelta(hours=72))
    assert (found.ephemeral_session_lifetime, found.idle_ephemeral_session_lifetime) == (timedelta(hours=72), timedelta(hours=24))
    assert found.sends_issuer
    assert found.is_logout_prompt_enabled
    assert found.is_session_persistent
    assert not found.takes_organization_names
    assert found.enabled_locales == ("en",)
    assert found.brute_force.max_attempts == 10
    assert found.brute_force.blocks
    assert found.brute_force.notifies
    assert found.brute_force.counts_addresses
    assert not TenantSettings.objects.of(tenant.pk).exists()


def test_a_change_is_visible_immediately_in_the_process_that_made_the_change(tenant: Tenant) -> None:
    assert sign_in_settings(tenant.pk).support_email == ""
    update_tenant_settings(tenant_id=tenant.pk, changes={"support_email": "help@example.test", "session_lifetime": 0.5})

    assert sign_in_settings(tenant.pk).support_email == "help@example.test"
    assert sign_in_settings(tenant.pk).session_lifetime == timedelta(minutes=30)


def test_a_change_by_another_process_is_visible_within_a_second(tenant: Tenant) -> None:
    sign_in_settings(tenant.pk)
    TenantSettingsFactory.create(tenant_id=tenant.pk, values={"support_email": "other@example.test"})

    assert sign_in_settings(tenant.pk).support_email == ""
    assert remembered_settings.get(tenant.pk, max_age=0).support_email == "other@example.test"


def test_settings_of_one_tenant_do_not_affect_another_tenant(tenant: Tenant) -> None:
    other = make_other_tenant()
    update_tenant_settings(tenant_id=tenant.pk, changes={"allowed_logout_urls": ["https://app.example.test/"]})
    update_brute_force(tenant_id=tenant.pk, changes={"max_attempts": 3})

    assert sign_in_settings(other.pk).allowed_logout_urls == ()
    assert sign_in_settings(other.pk).brute_force.max_attempts == 10


def test_null_restores_a_default_and_other_settings_stay_unchanged(tenant: Tenant) -> None:
    update_tenant_settings(tenant_id=tenant.pk, changes={"session_lifetime": 1, "support_url": "https://help.example.test"})
    row = update_tenant_settings(tenant_id=tenant.pk, changes={"session_lifetime": None})

    assert settings_values(row)["session_lifetime"] == 168
    assert row.values == {"support_url": "https://help.example.test"}


def test_flags_are_merged_and_nested_objects_are_replaced(tenant: Tenant) -> None:
    first = {"flags": {"genai_trial": True}, "branding": {"primary_color": "#112233", "page_background": "#ffffff"}}
    update_tenant_settings(tenant_id=tenant.pk, changes=first)
    row = update_tenant_settings(
        tenant_id=tenant.pk, changes={"flags": {"enable_pipeline2": True}, "branding": {"primary_color": "#445566"}}
    )

    assert row.values["flags"] == {"genai_trial": True, "enable_pipeline2": True}
    assert row.values["branding"] == {"primary_color": "#445566"}
    assert sign_in_settings(tenant.pk).page_background == ""


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"nonsense": True}, "nonsense"),
        ({"session_lifetime": 8761}, "session_lifetime"),
        ({"idle_session_lifetime": 0.01}, "idle_session_lifetime"),
        ({"flags": {"no_such_flag": True}}, "flags.no_such_flag"),
        ({"picture_url": "javascript:alert(1)"}, "picture_url"),
        ({"default_redirection_uri": "https://app.example.test/#part"}, "default_redirection_uri"),
        ({"branding": {"logo_url": "http://insecure.example.test/logo.png"}}, "branding.logo_url"),
        ({"branding": {"primary_color": "red;} body {display: none"}}, "branding.primary_color"),
        ({"branding": {"font": "x"}}, "branding.font"),
        ({"default_directory": "nobody"}, "default_directory"),
        ({"default_audience": "https://nobody.example.test"}, "default_audience"),
    ],
)
def test_an_invalid_setting_is_refused_and_nothing_is_stored(tenant: Tenant, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        update_tenant_settings(tenant_id=tenant.pk, changes={"friendly_name": "Kept?", **changes})

    assert list(refused.value.errors) == [field]
    assert not TenantSettings.objects.of(tenant.pk).exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"flags": {"enable_public_signup_user_exists_error": True}},
        {"flags": {"disable_clickjack_protection_headers": True}},
        {"error_page": {"html": "<script>alert(1)</script>"}},
        {"change_password": {"enabled": True, "html": "<b>hi</b>"}},
    ],
)
def test_a_setting_for_an_unsupported_feature_is_refused(tenant: Tenant, changes: dict[str, Any]) -> None:
    with pytest.raises(NotSupported):
        update_tenant_settings(tenant_id=tenant.pk, changes=changes)


def test_the_default_directory_and_audience_must_name_rows_of_the_tenant(tenant: Tenant, database_connection: Connection) -> None:
    other = make_other_tenant()
    make_connection(tenant_id=other.pk, name="theirs")
    create_api_resource(tenant_id=tenant.pk, identifier="https://orders.example.test")
    with pytest.raises(Invalid):
        update_tenant_settings(tenant_id=tenant.pk, changes={"default_directory": "theirs"})

    update_tenant_settings(tenant_id=tenant.pk, changes={"default_directory": "people", "default_audience": "https://orders.example.test"})

    found = sign_in_settings(tenant.pk)
    assert (found.default_directory, found.default_audience) == ("people", "https://orders.example.test")


def test_a_setting_that_names_a_deleted_row_does_not_prevent_other_changes(tenant: Tenant) -> None:
    TenantSettingsFactory.create(tenant_id=tenant.pk, values={"default_directory": "gone"})

    update_tenant_settings(tenant_id=tenant.pk, changes={"support_email": "help@example.test"})

    assert sign_in_settings(tenant.pk).support_email == "help@example.test"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": 101}, "max_attempts"),
        ({"mode": "count_nothing"}, "mode"),
        ({"shields": ["block", "shout"]}, "shields"),
        ({"allowlist": ["192.0.2.0/24", "somewhere"]}, "allowlist"),
        ({"allowlist": ["192.0.2.1"] * 101}, "allowlist"),
        ({"form_submission_mode": "x"}, "form_submission_mode"),
    ],
)
def test_invalid_brute_force_settings_are_refused(tenant: Tenant, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        update_brute_force(tenant_id=tenant.pk, changes=changes)
    assert list(refused.value.errors) == [field]


def test_brute_force_settings_can_be_changed_one_by_one(tenant: Tenant) -> None:
    update_brute_force(tenant_id=tenant.pk, changes={"mode": "count_per_identifier"})
    row = update_brute_force(tenant_id=tenant.pk, changes={"shields": ["block"], "allowlist": ["192.0.2.0/24"]})

    assert brute_force_values(row)["mode"] == "count_per_identifier"
    found = sign_in_settings(tenant.pk).brute_force
    assert found.blocks
    assert not found.notifies
    assert not found.counts_addresses
    assert found.allowlist == ("192.0.2.0/24",)
    update_brute_force(tenant_id=tenant.pk, changes={"enabled": False})
    assert not sign_in_settings(tenant.pk).brute_force.blocks


@pytest.mark.parametrize(("threshold", "is_lifted"), [(11, True), (9, False)])
def test_a_higher_threshold_lifts_blocks_but_a_lower_threshold_does_not(
    tenant: Tenant, database_connection: Connection, threshold: int, is_lifted: bool
) -> None:
    now = timezone.now()
    own = {"connection": database_connection, "last_failed_at": now}
    LoginFailuresFactory.create(**own, identifier="a@example.test", count=10, blocked_at=now)
    LoginFailuresFactory.create(**own, identifier="b@example.test", count=4)

    update_brute_force(tenant_id=tenant.pk, changes={"max_attempts": threshold})

    left = set(LoginFailures.objects.of(tenant.pk).values_list("identifier", flat=True))
    assert left == ({"b@example.test"} if is_lifted else {"a@example.test", "b@example.test"})
