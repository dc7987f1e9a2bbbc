"""The pages of clients, connections and APIs in a real browser.

A client for machines is created, and the command on its page requests a token.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.contrib.admin.utils import quote
from pytest_django.plugin import DjangoDbBlocker

from authapi.models import Client, ClientGrant
from authapi.services.clients import create_client
from identity.models import Connection, Tenant
from identity.services.connections import create_connection
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.admin import PASSWORD, new_staff
from tests.factories.authapi import granted_client
from tests.peers.accessibility import AXE, barriers_of
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers")]

_TABS = ("code-for-your-application", "credentials", "connections", "apis", "organizations", "logins")


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn") as process:
        yield process


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def visit(web: WebProcess, browser: Chromium, tenant: Tenant) -> Callable[[str], Page]:
    page = browser.page()
    base = f"http://127.0.0.1:{web.address[1]}"
    page.open(f"{base}/admin/login/?next=/admin/")
    page.fill("input[name=username]", new_staff(tenant).email)
    page.fill("input[name=password]", PASSWORD)
    page.click("#login-form button")
    page.until("location.pathname === '/admin/' && document.readyState === 'complete'")

    def opened(path: str) -> Page:
        page.open(base + path)
        return page

    return opened


def test_a_machine_client_is_created_and_the_copied_command_gets_a_token(
    visit: Callable[[str], Page], web: WebProcess, tenant: Tenant, tmp_path: Path
) -> None:
    page = visit("/admin/authapi/client/add/")
    page.click(".kinds a[href='?kind=machine']")
    page.until("document.querySelector('[name=scopes]') !== null && document.readyState === 'complete'")
    page.fill("[name=name]", "Nightly report")
    page.evaluate("document.querySelector('[name=api]').value = 'management'")
    page.fill("[name=scopes]", "read:users")
    page.click("[name=_save]")
    page.until("document.querySelector('.secret-done') !== null && document.readyState === 'complete'")
    secret = page.evaluate("document.querySelectorAll('.secret-once [data-copy]')[0].dataset.copy")
    page.click(".secret-done")
    page.until("document.querySelector('.snippet [data-copy]') !== null && document.readyState === 'complete'")
    line = page.evaluate("document.querySelector('.snippet[open] [data-copy]').dataset.copy")

    client = Client.objects.of(tenant.pk).get(name="Nightly report")
    assert ClientGrant.objects.of(tenant.pk).get(client=client).scopes == ["read:users"]
    assert secret not in line
    without = pasted(line, web, tmp_path)
    assert (without.returncode != 0, without.stdout) == (True, "")
    assert "Set CLIENT_SECRET to the secret of this client" in without.stderr
    granted = json.loads(pasted(line, web, tmp_path, CLIENT_SECRET=secret).stdout)
    assert (granted["token_type"], granted["scope"]) == ("Bearer", "read:users")
    refused = json.loads(pasted(line, web, tmp_path, CLIENT_SECRET="wrong").stdout)
    assert refused["error_description"]
    assert page.complaints == []


def pasted(line: str, web: WebProcess, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command `line` in a shell. curl resolves the host of the tenant to the process `web`."""
    host = urlsplit(line.partition('"')[2].partition('"')[0]).netloc
    assert host.endswith(f":{web.address[1]}"), line
    (home / ".curlrc").write_text(f'resolve = "{host}:127.0.0.1"\n')
    environment = {"PATH": os.environ["PATH"], "CURL_HOME": str(home), "HOME": str(home), **variables}
    return subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_the_pages_of_clients_connections_and_apis_are_accessible_on_every_screen(visit: Callable[[str], Page], tenant: Tenant) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make test-peers")
    web_client, _ = create_client(tenant_id=tenant.pk, name="Shop", grant_types=["authorization_code"])
    robot = granted_client(tenant).client
    people: Connection = create_connection(
        tenant_id=tenant.pk, name="people", strategy="database", enabled_clients=[web_client.client_id, robot.client_id]
    )
    api = ClientGrant.objects.of(tenant.pk).get().api_resource
    client, connection = f"/admin/authapi/client/{robot.pk}", f"/admin/identity/connection/{quote(people.pk)}"
    paths = [
        "/admin/authapi/client/add/",
        "/admin/authapi/client/add/?kind=spa",
        "/admin/identity/connection/add/?strategy=samlp",
        "/admin/identity/connection/add/?strategy=database",
        "/admin/identity/connection/add/?strategy=google-apps",
        *(f"{client}/change/?tab={tab}" for tab in _TABS),
        f"{client}/connections/",
        *(f"{connection}/change/?tab={tab}" for tab in ("", "users", "applications", "organizations", "metadata")),
        f"{connection}/applications/",
        *(f"/admin/authapi/apiresource/{api.pk}/change/?tab={tab}" for tab in ("", "permissions", "clients")),
    ]
    barriers = {path: wrong for path in paths if (wrong := barriers_of(visit(path)))}
    assert barriers == {}, json.dumps(barriers, indent=1)
