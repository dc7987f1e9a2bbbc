"""Logins at a third-party provider: oidc-provider of npm with its own pages, which requires PKCE and sends `iss` in its responses."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
import requests
from django.test import Client as Browser

from authapi.models import Session
from authapi.upstream import metadata
from config.launcher.peers import PLACE
from identity.models import Tenant, User
from tests.factories.models.identity import ConnectionFactory
from tests.factories.provider import address_of_logout
from tests.factories.scim import listening
from tests.factories.sign_in import CALLBACK, web_client
from tests.ports import free_port

pytestmark = pytest.mark.peer
_DRIVER = Path(__file__).parent / "drivers" / "oidc_provider.mjs"


@contextmanager
def provider(callback: str, algorithm: str) -> Iterator[str]:
    """Run the provider, and yield its issuer."""
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "oidc-provider").exists():
        pytest.skip("oidc-provider is not installed: make test-peers")
    # Copy the driver beside the packages: Node searches for packages in the directory of the program.
    driver = Path(shutil.copy(_DRIVER, PLACE))
    port = free_port()
    with listening([node, str(driver), str(port), callback, algorithm], port):
        yield f"http://127.0.0.1:{port}"


def log_in(address: str, name: str) -> str:
    """Log in and consent on the pages of the provider. Return the URL to which the provider redirects the browser."""
    browser = requests.Session()
    page = browser.get(address, timeout=30)
    for prompt in ("login", "consent"):
        action = re.search(r'action="([^"]+)"', page.text)
        assert action is not None, page.text
        form = {"prompt": prompt, "login": name, "password": "any"}
        answer = browser.post(urljoin(page.url, action[1]), data=form, timeout=30, allow_redirects=False)
        while answer.is_redirect:
            target = urljoin(answer.url, answer.headers["Location"])
            if urlsplit(target).hostname != "127.0.0.1":
                return target
            answer = browser.get(target, timeout=30, allow_redirects=False)
        page = answer
    raise AssertionError(page.text)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_users_of_another_provider_become_users_of_the_tenant(tenant: Tenant, algorithm: str) -> None:
    host = f"{tenant.pk}.example.test"
    metadata.documents.clear()
    client, _ = web_client(tenant)
    with provider(f"http://{host}/login/callback", algorithm) as issuer:
        options = {"client_id": "tenant", "client_secret": "only-for-a-test", "issuer": issuer}
        ConnectionFactory.create(tenant_id=tenant.pk, name="corp", strategy="oidc", enabled_clients=[client.client_id], options=options)
        browser = Browser(headers={"host": host})
        asked = {"response_type": "code", "client_id": client.client_id, "redirect_uri": CALLBACK, "scope": "openid", "state": "s"}
        elsewhere = browser.get(browser.get("/authorize", asked)["Location"])
        back = urlsplit(log_in(elsewhere["Location"], "ada"))
        answer = {name: values[0] for name, values in parse_qs(back.query).items()}
        assert answer["iss"] == issuer
        told = browser.get("/login/callback", answer)
        assert told["Location"].startswith(f"{CALLBACK}?code="), told["Location"]
        user = User.objects.of(tenant.pk).get()
        assert (user.user_id, user.email, user.email_verified, user.name) == ("oidc|corp|ada", "ada@corp.example.test", True, "Name of ada")
        session = Session.objects.of(tenant.pk).get(user=user)
        logout = address_of_logout(session, return_to="https://app.example.test/bye") or ""
        assert requests.get(logout, timeout=30).status_code == 200
