"""The code snippets on the pages of clients run unchanged, for every kind of application. The form of the admin creates the clients."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client as AdminBrowser
from django.urls import reverse
from pytest_django.fixtures import Settings

from authapi.grants.device_code import DeviceCodeGrant
from authapi.models import ApiResource, Client, ClientCredential
from authapi.services.client_credentials import NewCredential, create_client_with_credentials
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from config.launcher.peers import PLACE
from identity.hosts import forget_hosts
from identity.models import Connection, Tenant
from identity.services.connections import change_enabled_clients
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.factories.admin import browser_of, new_staff
from tests.factories.identity import make_user
from tests.factories.models.authapi import ApiResourceFactory
from tests.peers.chromium import PROGRAM, chromium
from tests.peers.drivers.hosted_pages import Form
from tests.ports import free_port

pytestmark = pytest.mark.peer

EMAIL, PASSWORD = "ada@example.test", "correct horse battery staple 7"
API = "https://shop.example.test/api"
PYTHON = PLACE / "python" / "bin" / "python"
NODE = shutil.which("node")


@dataclass(frozen=True)
class World:
    """A service with one user, and a session in the admin that creates clients."""

    tenant: Tenant
    connection: Connection
    api: ApiResource
    web: WebProcess
    admin: AdminBrowser

    def snippets(self, kind: str, **fields: str) -> tuple[dict[str, str], dict[str, str]]:
        """Create a client in the admin. Return its snippets by title, and the environment variable with its secret, if it has one."""
        answer = self.admin.post(f"{reverse('admin:authapi_client_add')}?kind={kind}", {"name": "Application", **fields})
        secret = {"CLIENT_SECRET": answer.context["secret"]} if kind in ("web", "machine") else {}
        return self.snippets_of(Client.objects.of(self.tenant.pk).get()), secret

    def client_with_key(self, directory: Path, algorithm: str, **columns: Any) -> tuple[Client, dict[str, str]]:
        """Create a client that authenticates with a key. Return the client and the environment variables that its snippets need."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
        credential = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public, algorithm=algorithm)
        client = create_client_with_credentials(
            tenant_id=self.tenant.pk, name="Application", methods={"private_key_jwt": [credential]}, **columns
        )
        file = directory / "client.pem"
        file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        return client, {"CLIENT_KEY_FILE": str(file)}

    def snippets_of(self, client: Client) -> dict[str, str]:
        """Enable logins at the client, and create a client grant for the tenant's API and users. Return its snippets by title."""
        create_client_grant(tenant_id=self.tenant.pk, client_id=client.client_id, api_resource=self.api, subject_type="user")
        change_enabled_clients(tenant_id=self.tenant.pk, connection_id=self.connection.pk, added=[client.client_id], removed=[])
        port = self.web.address[1]
        page = reverse("admin:authapi_client_change", args=(client.pk,))
        shown = self.admin.get(page, {"tab": "code-for-your-application"}, headers={"host": f"localhost:{port}"})
        return {snippet.title: snippet.text for snippet in shown.context["snippets"]}


@pytest.fixture
def world(tenant: Tenant, database_connection: Connection, settings: Settings) -> Iterator[World]:
    # Serve the tenant at localhost, because no name server knows the domain of the tenant.
    settings.LOCALHOST_TENANT = tenant.pk
    forget_hosts()
    make_user(connection=database_connection, email=EMAIL, password=PASSWORD, given_name="Ada", email_verified=True)
    api = ApiResourceFactory.create(tenant_id=tenant.pk, identifier=API)
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
        yield World(tenant, database_connection, api, web, browser_of(new_staff(tenant)))
    forget_hosts()


@contextmanager
def started(command: list[str], directory: Path, **environment: str) -> Iterator[Path]:
    """Run a program until the end of the block. Yield the file with the output of the program."""
    output = directory / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(command, cwd=directory, env=os.environ | environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield output
    finally:
        process.kill()
        process.wait()


def output_of(command: list[str], directory: Path, **environment: str) -> str:
    done = subprocess.run(command, cwd=directory, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def saved(directory: Path, name: str, text: str) -> str:
    file = directory / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def answers(address: str) -> bool:
    try:
        requests.get(address, allow_redirects=False, timeout=5)
    except requests.ConnectionError:
        return False
    return True


def logged_in(address: str) -> requests.Response:
    """Open the URL of an application as a browser does, and log in on the hosted pages. Return the response of the application."""
    browser = requests.Session()
    answer = browser.get(address, timeout=20)
    for _ in range(5):
        form = Form(answer.text, {"email": EMAIL, "password": PASSWORD})
        if form.action is None:
            return answer
        parts = urlsplit(answer.url)
        headers = {"Referer": answer.url, "Origin": f"{parts.scheme}://{parts.netloc}"}
        answer = browser.post(urljoin(answer.url, form.action or answer.url), data=form.fields, headers=headers, timeout=20)
    raise AssertionError("too many forms")


def audience_of(token: str) -> list[str]:
    """Return the audience of an access token, without checking the signature."""
    part = token.split(".")[1]
    audience = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["aud"]
    return [audience] if isinstance(audience, str) else audience


def needs(program: Any, name: str) -> None:
    if not program:
        pytest.skip(f"{name} is not installed: make test-peers")


def check_login(command: list[str], directory: Path, port: int, secret: Mapping[str, str]) -> None:
    """Run a program of a web application. Check that it logs the user in, and refuses a response with the state of another login."""
    with started(command, directory, **secret) as output:
        eventually(lambda: answers(f"http://127.0.0.1:{port}/nowhere"), seconds=30)
        answer = logged_in(f"http://127.0.0.1:{port}/")
        assert answer.status_code == 200, output.read_text()
        assert answer.json()["email"] == EMAIL
        assert requests.get(f"http://127.0.0.1:{port}/callback?code=x&state=y", timeout=10).status_code == 400


def test_the_python_program_of_a_web_application_logs_a_user_in(world: World, tmp_path: Path) -> None:
    needs(PYTHON.exists(), "Authlib")
    port = free_port()
    snippets, secret = world.snippets("web", callbacks=f"http://127.0.0.1:{port}/callback")
    program = saved(tmp_path, "app.py", snippets["Python, with Authlib"])

    check_login([str(PYTHON), program], tmp_path, port, secret)


def test_the_node_program_of_a_web_application_logs_a_user_in(world: World, tmp_path: Path) -> None:
    needs(NODE and (PLACE / "node_modules" / "openid-client").exists(), "openid-client")
    port = free_port()
    snippets, secret = world.snippets("web", callbacks=f"http://127.0.0.1:{port}/callback")
    (tmp_path / "node_modules").symlink_to(PLACE / "node_modules")
    program = saved(tmp_path, "app.mjs", snippets["JavaScript, with openid-client"])

    check_login([str(NODE), program], tmp_path, port, secret)


def test_the_page_of_a_single_page_application_logs_a_user_in(world: World, tmp_path: Path) -> None:
    needs(PROGRAM, "chromium")
    port = free_port()
    snippets, _ = world.snippets("spa", callbacks=f"http://127.0.0.1:{port}/callback")
    text = snippets["JavaScript in a page, without a library"]
    file, command = re.findall(r"Save as (\S+)\. Run in the same directory: (.+?) -->", text)[0]
    saved(tmp_path, file, text)

    with started(command.split(), tmp_path), chromium() as browser:
        eventually(lambda: answers(f"http://127.0.0.1:{port}/callback"), seconds=30)
        page = browser.page()
        page.open(f"http://127.0.0.1:{port}/callback")
        page.click("button")
        page.until("document.querySelector('input[type=password]') !== null", seconds=30)
        page.fill("input[autocomplete=username]", EMAIL)
        page.fill("input[type=password]", PASSWORD)
        page.click("form button[type=submit]")
        page.until(f"(document.querySelector('pre')?.textContent ?? '').includes({EMAIL!r})", seconds=30)
        assert "code=" not in page.evaluate("location.href")


def test_the_program_of_a_native_application_logs_a_user_in(world: World, tmp_path: Path) -> None:
    snippets, _ = world.snippets("native", callbacks="http://127.0.0.1/callback")
    program = saved(tmp_path, "app.py", snippets["Python, without a library"])

    with started(["python3", program], tmp_path, BROWSER="true") as output:
        eventually(lambda: "Log in at" in output.read_text(), seconds=30)
        address = re.findall(r"Log in at (\S+)", output.read_text())[0]
        assert "You can close this page." in logged_in(address).text
        eventually(lambda: EMAIL in output.read_text(), seconds=30)


def test_the_snippet_of_a_device_waits_for_the_login_and_prints_the_tokens(world: World, tmp_path: Path) -> None:
    client, _ = create_client(
        tenant_id=world.tenant.pk, name="TV", grant_types=[DeviceCodeGrant.name], token_endpoint_auth_method=Client.AuthMethod.NONE
    )
    text = world.snippets_of(client)["Device without a browser, with curl"]

    with started(["bash", "-c", text], tmp_path) as output:
        eventually(lambda: "Log in at http" in output.read_text(), seconds=30)
        address = re.findall(r"Log in at (\S+)", output.read_text())[0]
        assert logged_in(address).status_code == 200
        eventually(lambda: '"access_token"' in output.read_text(), seconds=30)
        token = re.findall(r'"access_token": *"([^"]+)"', output.read_text())[0]
        assert API in audience_of(token)


def test_the_snippets_of_a_machine_get_a_token_of_the_granted_api(world: World, tmp_path: Path) -> None:
    needs(PYTHON.exists(), "Authlib")
    snippets, secret = world.snippets("machine", api="management", scopes="read:users")
    (tmp_path / "node_modules").symlink_to(PLACE / "node_modules")

    answer = json.loads(output_of(["bash", "-c", snippets["Shell, with curl"]], tmp_path, **secret))
    assert (answer["token_type"], answer["scope"]) == ("Bearer", "read:users")
    program = saved(tmp_path, "app.py", snippets["Python, with Authlib"])
    assert output_of([str(PYTHON), program], tmp_path, **secret).count(".") == 2
    if NODE is not None:
        program = saved(tmp_path, "app.mjs", snippets["JavaScript, with openid-client"])
        assert output_of([NODE, program], tmp_path, **secret).count(".") == 2


def test_the_snippets_of_a_machine_with_a_key_sign_an_assertion(world: World, tmp_path: Path) -> None:
    needs(PYTHON.exists(), "Authlib")
    (tmp_path / "node_modules").symlink_to(PLACE / "node_modules")
    for algorithm in ("RS256", "RS384", "PS256"):
        client, environment = world.client_with_key(tmp_path, algorithm, grant_types=["client_credentials"])
        create_client_grant(tenant_id=world.tenant.pk, client_id=client.client_id, api_resource=world.api)
        snippets = world.snippets_of(client)
        answer = json.loads(output_of(["bash", "-c", snippets["Shell, with curl"]], tmp_path, **environment))
        assert audience_of(answer["access_token"]) == [API]

    program = saved(tmp_path, "app.py", snippets["Python, with Authlib"])
    assert audience_of(output_of([str(PYTHON), program], tmp_path, **environment)) == [API]
    if NODE is not None:
        program = saved(tmp_path, "app.mjs", snippets["JavaScript, with openid-client"])
        assert audience_of(output_of([NODE, program], tmp_path, **environment)) == [API]


@pytest.mark.parametrize(("title", "file"), [("Python, with Authlib", "app.py"), ("JavaScript, with openid-client", "app.mjs")])
def test_the_programs_of_a_web_application_with_a_key_log_a_user_in(world: World, tmp_path: Path, title: str, file: str) -> None:
    runtime = {"app.py": str(PYTHON) if PYTHON.exists() else None, "app.mjs": NODE}[file]
    needs(runtime, title)
    port = free_port()
    client, environment = world.client_with_key(
        tmp_path, "PS256", grant_types=["authorization_code"], redirect_uris=f"http://127.0.0.1:{port}/callback"
    )
    (tmp_path / "node_modules").symlink_to(PLACE / "node_modules")
    program = saved(tmp_path, file, world.snippets_of(client)[title])

    check_login([str(runtime), program], tmp_path, port, environment)


def test_the_curl_snippet_of_a_machine_without_its_secret_says_what_is_missing(world: World, tmp_path: Path) -> None:
    snippets, _ = world.snippets("machine", api="management", scopes="read:users")
    environment = {name: value for name, value in os.environ.items() if name != "CLIENT_SECRET"}

    done = subprocess.run(
        ["bash", "-c", snippets["Shell, with curl"]], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode != 0
    assert "Set CLIENT_SECRET to the secret of this client" in done.stderr


@pytest.mark.parametrize(("kind", "element"), [("saml", "EntityDescriptor"), ("wsfed", "EntityDescriptor")])
def test_the_snippet_of_an_application_without_oauth_prints_its_metadata(world: World, tmp_path: Path, kind: str, element: str) -> None:
    snippets, _ = world.snippets(kind, callbacks="https://app.example.test/acs")

    assert element in output_of(["bash", "-c", snippets["Metadata, with curl"]], tmp_path)
