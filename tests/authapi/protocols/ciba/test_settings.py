"""Settings for notifying users of approvals, over the management interface and in the admin. Secrets are stored and never shown."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from authapi.models import AdministrativeLine, TenantSettings
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import AuditEntry, Tenant
from identity.services.failures import Invalid
from tests.authapi.test_sign_in_pages import form_of
from tests.factories.admin import browser_of, new_staff
from tests.management import Management

SECRET = "a-secret-of-twenty-four-characters"
SETTING = "backchannel_authentication"
WEBHOOK = {"channel": "webhook", "webhook_url": "https://hooks.example.test/ciba", "webhook_secret": SECRET}


def test_a_new_url_of_the_webhook_requires_the_secret_again(tenant: Tenant) -> None:
    for change in (
        {"channel": "webhook"},
        {"channel": "pigeon"},
        {**WEBHOOK, "webhook_secret": "short"},
        {**WEBHOOK, "webhook_url": "ftp://hooks.example.test/"},
        {**WEBHOOK, "webhook_url": "https://user@hooks.example.test/"},
        {**WEBHOOK, "webhook_url": "https://[hooks.example.test/"},
        {"channel": "webhook", "webhook_url": "https://hooks.example.test/"},
    ):
        with pytest.raises(Invalid):
            update_tenant_settings(tenant_id=tenant.pk, changes={SETTING: change})
    row = update_tenant_settings(tenant_id=tenant.pk, changes={SETTING: WEBHOOK})
    assert SECRET not in str((row.values, row.sealed_values))
    assert row.secret("webhook_secret") == SECRET
    with pytest.raises(Invalid, match="needs the secret again"):
        update_tenant_settings(tenant_id=tenant.pk, changes={SETTING: {"webhook_url": "https://evil.example.test/"}})
    # A request that sets only the channel leaves the other settings unchanged.
    row = update_tenant_settings(tenant_id=tenant.pk, changes={SETTING: {"channel": "email"}})
    assert (row.values[SETTING]["channel"], row.secret("webhook_secret")) == ("email", SECRET)
    row = update_tenant_settings(tenant_id=tenant.pk, changes={SETTING: None})
    assert (row.values, row.sealed_values) == ({}, {})


def test_the_management_interface_accepts_the_secret_and_never_shows_it(tenant: Tenant) -> None:
    api = Management(tenant)
    assert api.get("tenants/settings").json[SETTING] == {"channel": "email", "webhook_url": ""}
    answer = api.patch("tenants/settings", {SETTING: WEBHOOK})
    assert answer.status == 200, answer.json
    assert answer.json[SETTING] == {"channel": "webhook", "webhook_url": WEBHOOK["webhook_url"]}
    assert api.patch("tenants/settings", {SETTING: {"channel": "pigeon"}}).status == 400
    kept = [*AdministrativeLine.objects.of(tenant.pk).values(), *AuditEntry.objects.filter(tenant_id=tenant.pk).values()]
    assert SECRET not in str(kept) + str(TenantSettings.objects.of(tenant.pk).values())


def test_the_form_names_missing_values_and_does_not_show_the_secret(tenant: Tenant, settings: Any) -> None:
    browser = browser_of(new_staff(tenant))
    add = reverse("admin:authapi_tenantsettings_add")
    wrong = browser.post(add, form_of(browser, add, notifier_channel="webhook", notifier_webhook_url=WEBHOOK["webhook_url"]))
    assert "needs a secret" in wrong.content.decode()
    assert not TenantSettings.objects.of(tenant.pk).exists()
    sent = {f"notifier_{name}": value for name, value in WEBHOOK.items()}
    assert browser.post(add, form_of(browser, add, **sent)).status_code == 302
    row = TenantSettings.objects.of(tenant.pk).get()
    assert row.secret("webhook_secret") == SECRET
    change = reverse("admin:authapi_tenantsettings_change", args=(row.pk,))
    assert SECRET not in browser.get(change).content.decode()
    assert browser.post(change, form_of(browser, change, friendly_name="Acme")).status_code == 302
    row.refresh_from_db()
    assert (row.values["friendly_name"], row.secret("webhook_secret")) == ("Acme", SECRET)
    settings.MAIL_IS_CONFIGURED = False
    browser.post(change, form_of(browser, change, notifier_channel="email"))
    assert "no mail server is configured" in browser.get(change).content.decode()
