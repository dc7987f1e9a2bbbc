"""A login at a real OpenID provider: a tenant of this service is the provider, at which another tenant lets its users log in."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
import requests
from django.test import Client as Browser

from authapi.models import Session
from authapi.upstream import metadata
from identity.hosts import forget_hosts
from identity.models import Tenant, User
from tests.conformance.web_process import web_process
from tests.factories.models.identity import ConnectionFactory, TenantFactory
from tests.factories.provider import address_of_logout
from tests.factories.sign_in import CALLBACK, PASSWORD, people, person, web_client

ELSEWHERE_CALLBACK = "http://{}.example.test/login/callback"


@pytest.fixture
def provider_tenant(committed_db: None) -> Tenant:
    name = f"p-{secrets.token_hex(6)}"
    return TenantFactory.create(id=name, name=name, host=f"{name}.example.test")


@pytest.fixture
def issuer(provider_tenant: Tenant) -> Iterator[str]:
    """Start a web process that serves the provider, and yield its URL."""
    metadata.documents.clear()
    forget_hosts()
    with web_process("uvicorn", LOCALHOST_TENANT=provider_tenant.pk) as process:
        yield f"http://127.0.0.1:{process.address[1]}/"


def log_in_at_the_provider(address: str, *, password: str) -> str:
    """Log in at the provider with a new browser. Return the URL of the redirect to the other tenant, or "" if the login failed."""
    browser = requests.Session()
    page = browser.get(address, timeout=30)
    assert page.status_code == 200, page.text
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
    form = {**fields, "username": "ada@example.test", "password": password}
    answer = browser.post(urljoin(page.url, "/u/login"), data=form, timeout=30, allow_redirects=False)
    while answer.is_redirect and urlsplit(urljoin(answer.url, answer.headers["Location"])).hostname == "127.0.0.1":
        answer = browser.get(urljoin(answer.url, answer.headers["Location"]), timeout=30, allow_redirects=False)
    return answer.headers.get("Location", "")


def test_users_of_a_tenant_log_in_at_another_tenant_with_the_right_password(tenant: Tenant, provider_tenant: Tenant, issuer: str) -> None:
    at_provider, secret = web_client(provider_tenant, redirect_uris=ELSEWHERE_CALLBACK.format(tenant.pk))
    ada = person(people(provider_tenant, at_provider))
    client, _ = web_client(tenant)
    options = {
        "client_id": at_provider.client_id,
        "client_secret": secret,
        "issuer": issuer,
        "token_endpoint_auth_method": "client_secret_post",
    }
    ConnectionFactory.create(tenant_id=tenant.pk, name="corp", strategy="oidc", enabled_clients=[client.client_id], options=options)
    browser = Browser(headers={"host": f"{tenant.pk}.example.test"})

    wrong = log_in_at_the_provider(_elsewhere(browser, client.client_id), password="wrong")
    assert wrong == ""
    back = log_in_at_the_provider(_elsewhere(browser, client.client_id), password=PASSWORD)
    assert back.startswith(ELSEWHERE_CALLBACK.format(tenant.pk) + "?")
    assert parse_qs(urlsplit(back).query)["iss"] == [issuer]
    told = browser.get("/login/callback", {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()})
    assert told["Location"].startswith(f"{CALLBACK}?"), told["Location"]
    assert "code" in parse_qs(urlsplit(told["Location"]).query), told["Location"]

    user = User.objects.of(tenant.pk).get()
    assert user.user_id == f"oidc|corp|{ada.user_id}"
    assert (user.email, user.name) == (ada.email, ada.name)
    session = Session.objects.of(tenant.pk).get(user=user)
    logout = address_of_logout(session, return_to="https://app.example.test/bye") or ""
    assert logout.startswith(f"{issuer}oidc/logout?")


def _elsewhere(browser: Any, client_id: str) -> str:
    asked = {"response_type": "code", "client_id": client_id, "redirect_uri": CALLBACK, "scope": "openid", "state": "s"}
    page = browser.get("/authorize", asked)
    elsewhere = browser.get(page["Location"])
    assert elsewhere.status_code == 302, elsewhere.content
    return str(elsewhere["Location"])
