"""The unmodified deploy tool exports and imports a whole tenant over TLS. An export after an import equals the first export."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import requests
import yaml
from pytest_django.fixtures import Settings

from config.launcher.peers import PLACE
from config.launcher.tls import ServerCertificate
from identity.models import Tenant
from tests.conformance.web_process import WebProcess, tls_web_process
from tests.factories.authapi import global_client
from tests.factories.models.identity import TenantFactory
from tests.management import Management
from tests.peers.sign_in_world import serving

# Before each import, the tool compiles its schema. This takes 10 s of processor time, and several times as long on a busy machine.
pytestmark = pytest.mark.peer

TOOL = PLACE / "node_modules" / "auth0-deploy-cli" / "lib" / "index.js"
SECONDS = 240
AUDIENCE = "https://orders.example.test/"
OWN_API = "Management interface"
# Sections that the tool cannot import into another tenant. It transfers actions as code, but actions of this service use a template. Event
# streams refer to actions, so the tool cannot import event streams either. A custom domain belongs to one tenant.
OF_ONE_TENANT = ("actions", "eventStreams", "customDomains")
PROVIDER = "https://login.example.test"


@dataclass(frozen=True)
class Target:
    """A tenant for the tool: its domain, and the token with which the tool calls the management interface."""

    domain: str
    token: str
    certificate: ServerCertificate

    def run(self, *arguments: str, **configuration: Any) -> None:
        """Run the tool with these arguments and settings until it ends. Fail if the tool fails."""
        settings = {name: value if isinstance(value, str) else orjson.dumps(value).decode() for name, value in configuration.items()}
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "NODE_EXTRA_CA_CERTS": str(self.certificate.authority),
            "AUTH0_DOMAIN": self.domain,
            "AUTH0_ACCESS_TOKEN": self.token,
            "AUTH0_EXCLUDED_RESOURCE_SERVERS": orjson.dumps([OWN_API]).decode(),
            **settings,
        }
        command = [str(shutil.which("node")), str(TOOL), *arguments]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def export(self, directory: Path, *, form: str = "yaml") -> Path:
        """Export the tenant into a new directory, and return the directory."""
        directory.mkdir()
        self.run("export", "--format", form, "--output_folder", str(directory))
        return directory


def target_of(tenant: Tenant, web: WebProcess, certificate: ServerCertificate) -> Target:
    """Return the tenant, with an access token of its global client, which may use the whole management interface.

    The tool reads the login page of the global client, so it can export only a tenant that has this client.
    """
    domain, client = f"localhost:{web.address[1]}", global_client(tenant)
    form = {"grant_type": "client_credentials", "client_id": client.client_id, "client_secret": client.secret}
    answer = requests.post(
        f"https://{domain}/oauth/token",
        json=form | {"audience": f"https://{domain}/api/v2/"},
        verify=str(certificate.authority),
        timeout=30,
    )
    return Target(domain, answer.json()["access_token"], certificate)


def fill(api: Management) -> None:
    """Create one object of each kind that the tool transfers."""

    def made(path: str, body: Any) -> Any:
        answer = api.post(path, body)
        assert answer.status in (200, 201, 204), (path, answer.body)
        return answer.json if answer.body else None

    made("custom-domains", {"domain": f"login-{secrets.token_hex(6)}.example.test", "type": "self_managed_certs"})
    made("resource-servers", {"identifier": AUDIENCE, "name": "Orders", "scopes": [{"value": "read:orders", "description": "Read"}]})
    shop = made("clients", {"name": "Shop", "app_type": "regular_web", "callbacks": ["https://shop.example.test/callback"]})["client_id"]
    made("clients", {"name": "Store front", "app_type": "spa", "web_origins": ["https://store.example.test"]})
    robot = made("clients", {"name": "Robot", "app_type": "non_interactive", "client_metadata": {"team": "blue"}})["client_id"]
    grant = made("client-grants", {"client_id": robot, "audience": AUDIENCE, "scope": ["read:orders"], "organization_usage": "allow"})["id"]
    people = made("connections", {"name": "people", "strategy": "auth0", "options": {"passwordPolicy": "fair"}, "enabled_clients": [shop]})[
        "id"
    ]
    mail = {"from": "Acme <login@example.test>", "subject": "Your code", "syntax": "liquid", "body": "<p>{{ code }}</p>"}
    options = {"email": mail, "totp": {"length": 6, "time_step": 180}, "brute_force_protection": True, "disable_signup": False}
    made("connections", {"name": "email", "strategy": "email", "options": options, "enabled_clients": [shop]})
    upstream = {"client_id": "acme", "client_secret": "not-for-the-file", "type": "back_channel", "scope": "openid email"}
    upstream |= {"issuer": PROVIDER, "authorization_endpoint": f"{PROVIDER}/authorize", "token_endpoint": f"{PROVIDER}/token"}
    upstream |= {"jwks_uri": f"{PROVIDER}/keys"}
    made("connections", {"name": "company", "strategy": "oidc", "display_name": "Company", "options": upstream})
    role = made("roles", {"name": "writer", "description": "Writes"})["id"]
    made(f"roles/{role}/permissions", {"permissions": [{"resource_server_identifier": AUDIENCE, "permission_name": "read:orders"}]})
    look = {"colors": {"primary": "#112233", "page_background": "#ffffff"}, "logo_url": "https://example.test/acme.png"}
    place = {"connection_id": people, "assign_membership_on_login": True, "show_as_button": True, "is_signup_enabled": False}
    organization = {"name": "acme", "display_name": "Acme", "branding": look, "metadata": {"tier": "gold"}}
    acme = made("organizations", organization | {"enabled_connections": [place]})["id"]
    made(f"organizations/{acme}/client-grants", {"grant_id": grant})
    settings = {"friendly_name": "Acme", "idle_session_lifetime": 24, "default_directory": "people", "flags": {"enable_apis_section": True}}
    changes = {
        "tenants/settings": settings | {"error_page": {"url": "https://example.test/error"}},
        "attack-protection/brute-force-protection": {"max_attempts": 7, "allowlist": ["192.0.2.0/24"]},
        "branding": look,
    }
    for path, body in changes.items():
        answer = api.patch(path, body)
        assert answer.status == 200, (path, answer.body)
    action = {"name": "Provision", "supported_triggers": [{"id": "event-stream", "version": "v1"}], "template": "scim-user-provisioning"}
    secret = [
        {"name": "SCIM_BASE_URL", "value": "https://scim.example.test/v2"},
        {"name": "SCIM_BEARER_TOKEN", "value": "not-for-the-file"},
    ]
    provision = made("actions/actions", action | {"secrets": secret, "deploy": True})["id"]
    destination = {"type": "action", "configuration": {"action_id": provision}}
    made("event-streams", {"name": "directory", "subscriptions": [{"event_type": "user.created"}], "destination": destination})


def files_of(directory: Path) -> dict[str, str]:
    """Return the text of every file below a directory, by its path."""
    return {str(file.relative_to(directory)): file.read_text() for file in sorted(directory.rglob("*")) if file.is_file()}


def sections_of(directory: Path, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the sections of an export in YAML."""
    sections = yaml.safe_load((directory / "tenant.yaml").read_text())
    return {name: section for name, section in sections.items() if name not in without}


def test_an_import_into_the_same_or_an_empty_tenant_gives_an_equal_export(tenant: Tenant, settings: Settings, tmp_path: Path) -> None:
    if shutil.which("node") is None or not TOOL.exists():
        pytest.skip("the deploy tool is not installed: make test-peers")
    # The tool supports only this strategy of database connections.
    settings.DATABASE_STRATEGY = "auth0"
    settings.RATE_LIMITS_ENABLED = False
    name = f"e-{secrets.token_hex(6)}"
    empty = TenantFactory.create(id=name, name=name, host=f"{name}.example.test")
    fill(Management(tenant))
    unlimited = {"DATABASE_STRATEGY": "auth0", "RATE_LIMITS_ENABLED": "0"}
    with (
        serving(tenant, tmp_path / "keys", **unlimited) as (web, certificate),
        tls_web_process(certificate, LOCALHOST_TENANT=empty.pk, **unlimited) as other_web,
        ThreadPoolExecutor(max_workers=3) as executor,
    ):
        here, there = target_of(tenant, web, certificate), target_of(empty, other_web, certificate)
        exports = [executor.submit(here.export, tmp_path / form, form=form) for form in ("yaml", "directory")]
        first, first_directory = (export.result() for export in exports)
        imports = [
            executor.submit(here.run, "import", "--input_file", str(first / "tenant.yaml")),
            executor.submit(there.run, "import", "--input_file", str(first_directory), AUTH0_EXCLUDED=OF_ONE_TENANT),
        ]
        for done in imports:
            done.result()
        again = executor.submit(here.export, tmp_path / "again")
        elsewhere = executor.submit(there.export, tmp_path / "elsewhere")
        assert files_of(again.result()) == files_of(first)
        assert sections_of(elsewhere.result(), without=OF_ONE_TENANT) == sections_of(first, without=OF_ONE_TENANT)
    sections = sections_of(first)
    counts = {part: len(sections[part]) for part in ("clients", "resourceServers", "clientGrants", "databases", "connections", "roles")}
    assert counts == {"clients": 3, "resourceServers": 1, "clientGrants": 1, "databases": 1, "connections": 2, "roles": 1}
    assert (first / "connections" / "email.html").read_text() == "<p>{{ code }}</p>"
    assert "not-for-the-file" not in "".join(files_of(first).values())
