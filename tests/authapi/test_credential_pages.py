"""Keys and certificates of clients in the admin, and the secrets of TLS proxies, which are shown once."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.sessions.models import Session as BrowserSession
from django.test import Client as Browser
from django.urls import reverse

from authapi.models import ClientCredential, EdgeKey, InitialAccessToken
from authapi.services.initial_tokens import use_initial_token
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of
from identity.models import CustomDomain, Tenant
from tests.authapi.assertions import public_pem
from tests.factories.admin import browser_of, new_staff
from tests.factories.authapi import Registered, granted_client

_KEY = re.compile(r'<code class="command" tabindex="0">([A-Za-z0-9_-]{43})</code>')


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


@pytest.fixture
def registered(tenant: Tenant) -> Registered:
    return granted_client(tenant)


def add(browser: Browser, registered: Registered, **fields: Any) -> Any:
    sent = {"client": registered.client.pk, "type": "public_key", "algorithm": "RS256", "name": "laptop", **fields}
    return browser.post(reverse("admin:authapi_clientcredential_add"), sent)


def use(browser: Browser, row: ClientCredential) -> Any:
    return browser.post(reverse("admin:authapi_clientcredential_action", args=(quote(row.pk), "use")), {"confirmed": "1"})


def test_an_invalid_key_is_refused_at_its_field(browser: Browser, registered: Registered) -> None:
    answer = add(browser, registered, pem="no key")
    assert answer.status_code == 200
    assert "Expected a public key or a certificate in PEM." in answer.content.decode()
    assert not ClientCredential.objects.of(registered.client.tenant_id).exists()


def test_a_key_can_be_added_and_enabled_and_deleted(browser: Browser, registered: Registered) -> None:
    assert add(browser, registered, pem=public_pem()).status_code == 302
    row = ClientCredential.objects.of(registered.client.tenant_id).get()
    registered.client.refresh_from_db()
    assert registered.client.auth_method == "client_secret_post"
    use(browser, row)
    registered.client.refresh_from_db()
    assert (registered.client.auth_method, registered.client.proof_ids) == ("private_key_jwt", (row.pk,))
    browser.post(reverse("admin:authapi_clientcredential_delete", args=(quote(row.pk),)), {"post": "yes"})
    registered.client.refresh_from_db()
    assert (registered.client.auth_method, registered.client.proof_ids) == ("private_key_jwt", ())


def test_the_expiry_of_a_key_is_entered_in_utc(browser: Browser, registered: Registered) -> None:
    add(browser, registered, pem=public_pem("first"), expires_at="2099-01-02T03:04:05")
    assert ClientCredential.objects.of(registered.client.tenant_id).get().expires_at == datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_only_two_keys_can_be_enabled_at_the_same_time(browser: Browser, registered: Registered) -> None:
    for name in ("first", "second", "third"):
        add(browser, registered, pem=public_pem(name), name=name)
    rows = ClientCredential.objects.of(registered.client.tenant_id)
    for name in ("first", "second", "third"):
        use(browser, rows.get(name=name))
    registered.client.refresh_from_db()
    assert registered.client.proof_ids == (rows.get(name="first").pk, rows.get(name="second").pk)


def test_an_initial_access_token_is_shown_only_once_and_not_stored_in_plain_text(browser: Browser, tenant: Tenant) -> None:
    place = "admin:authapi_initialaccesstoken"
    answer = browser.post(reverse(f"{place}_add"), {"name": "Partner", "days": 7, "most_uses": 1})
    found = _KEY.search(answer.content.decode())
    assert found is not None
    row = InitialAccessToken.objects.of(tenant.pk).get()
    assert row.digest == digest_of(found[1])
    assert found[1] not in browser.get(reverse(f"{place}_change", args=(row.pk,))).content.decode()
    assert found[1] not in "".join(session.session_data for session in BrowserSession.objects.all())
    browser.post(reverse(f"{place}_action", args=(row.pk, "revoke")), {"confirmed": "1"})
    assert use_initial_token(tenant_id=tenant.pk, token=found[1]) is None
    browser.post(reverse(f"{place}_delete", args=(row.pk,)), {"post": "yes"})
    assert not InitialAccessToken.objects.of(tenant.pk).exists()


@pytest.mark.parametrize("fields", [{"name": "", "days": 7}, {"name": "a", "days": 366}, {"name": "a", "days": 7, "most_uses": -1}])
def test_an_invalid_initial_access_token_is_not_created(browser: Browser, tenant: Tenant, fields: dict[str, Any]) -> None:
    assert browser.post(reverse("admin:authapi_initialaccesstoken_add"), fields).status_code == 200
    assert not InitialAccessToken.objects.of(tenant.pk).exists()


def test_the_secret_of_a_tls_proxy_is_shown_only_once_and_not_stored_in_plain_text(browser: Browser, tenant: Tenant) -> None:
    domain = CustomDomain.objects.of(tenant.pk).get()
    answer = browser.post(reverse("admin:authapi_edgekey_add"), {"domain": domain.pk})
    found = _KEY.search(answer.content.decode())
    assert found is not None
    row = EdgeKey.objects.of(tenant.pk).get(domain=domain)
    assert vault.digest_matches(found[1], row.digest)
    page = browser.get(reverse("admin:authapi_edgekey_change", args=(quote(row.pk),)))
    assert found[1] not in page.content.decode()
    assert found[1] not in "".join(session.session_data for session in BrowserSession.objects.all())
    renewed = browser.post(reverse("admin:authapi_edgekey_action", args=(quote(row.pk), "renew")), {"confirmed": "1"})
    again = _KEY.search(renewed.content.decode())
    assert again is not None
    assert not vault.digest_matches(found[1], EdgeKey.objects.of(tenant.pk).get(domain=domain).digest)
    assert vault.digest_matches(again[1], EdgeKey.objects.of(tenant.pk).get(domain=domain).digest)
