"""The tenant, the server and the browser for all visits of the hosted pages.

The tenant has every kind of application that has its own pages.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode

from authapi.models import Client, TenantSettings
from authapi.protocols.legacy.opting_in import LEGACY_GRANTS
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import create_client
from identity.models import Connection, Tenant, User
from identity.services.connections import create_connection, update_connection
from identity.services.memberships import add_connection, add_members
from identity.services.organizations import create_organization
from tests.authapi.factors.passkeys import ON as PASSKEYS_ON
from tests.conformance.web_process import web_process
from tests.factories.models.identity import TenantFactory
from tests.factories.sign_in import people, person
from tests.peers.chromium import Chromium, chromium

LANGUAGES = ("en", "de", "ar")
EMAIL, NUMBER, AUDIENCE = "ada@example.test", "+4915112345678", "urn:orders"
PASSKEY_EMAIL = "nova@example.test"
# Names in the tenant. No text of the pages contains these names in any language, so a name is not mistaken for a text.
TENANT, APPLICATION, SCOPE, ORGANIZATIONS = "Kvikkjokk", "Zettelkasten", "Grönland", ("Acme", "Globex")
NAMES = {TENANT, APPLICATION, SCOPE, *ORGANIZATIONS, EMAIL, NUMBER, PASSKEY_EMAIL}
_REALM_GRANT = "http://auth0.com/oauth/grant-type/password-realm"


@dataclass
class World:
    """The tenant, its service and its applications. A key of `clients` names the special property of the application."""

    tenant: Tenant
    service: str
    origin: str
    browser: Chromium
    people: Connection
    user: User
    clients: dict[str, Client] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    def authorize(self, client: str, **asked: str) -> str:
        """Return the URL of `/authorize` at which a login of the client starts, with additional parameters."""
        good = {
            "response_type": "code",
            "client_id": self.clients[client].client_id,
            "redirect_uri": f"{self.origin}/callback",
            "scope": "openid",
            "state": "as sent",
        }
        return f"{self.service}/authorize?{urlencode(good | asked)}"

    def another_person(self, email: str, **profile: Any) -> User:
        """Create a user for one visit. The visit may change the user."""
        return person(self.people, email=email, **profile)


class _Application(BaseHTTPRequestHandler):
    """The application to which users are redirected after a login. It answers every request with a nearly empty page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<!doctype html><html lang=en><title>Application</title><p>You are back.</p>")

    do_POST = do_GET  # noqa: N815 (the library calls this name)

    def log_message(self, *args: Any) -> None:
        """Write no log."""


@contextmanager
def application_server() -> Iterator[str]:
    """Serve the application while the block runs, and yield its origin."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Application)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def new_world() -> Iterator[World]:
    """Create the tenant and its objects, run the server and the browser while the block runs, and yield them as a `World`."""
    tenant = TenantFactory.create()
    page = {"enabled": True, "deletion": True}
    shown = {"friendly_name": TENANT, "support_email": "help@example.test"}
    values = {"enabled_locales": list(LANGUAGES), **shown, "account_page": page}
    factors = ["webauthn-platform", "webauthn-roaming", "otp", "sms", "recovery-code"]
    TenantSettings(tenant=tenant, values=values, second_factors={"factors": factors}).save()
    served = web_process(
        "uvicorn",
        LOCALHOST_TENANT=tenant.pk,
        SMS_URL="console:",
        # Raise the rate limits, which the visits would exceed. Another test visits the page about too many requests.
        ADDRESS_RATE_BURST="100000",
        ADDRESS_RATE_PER_SECOND="10000",
    )
    with application_server() as origin, served as web, chromium() as browser:
        connection = people(tenant)
        world = World(tenant, f"http://127.0.0.1:{web.address[1]}", origin, browser, connection, person(connection))
        _make_clients(world)
        _make_organizations(world)
        _take_passkeys(world)
        create_api_resource(tenant_id=tenant.pk, identifier=AUDIENCE, scopes=[{"value": "read:orders", "description": SCOPE}])
        yield world


def _make_clients(world: World) -> None:
    settings: dict[str, dict[str, Any]] = {
        "plain": {"web_origins": [world.origin]},
        "foreign": {},
        "by code": {},
        "by text": {},
        "every method": {},
        "one organization": {"organization_usage": "require", "organization_require_behavior": "pre_login_prompt"},
        "some organization": {"organization_usage": "allow", "organization_require_behavior": "post_login_prompt"},
        "old": {
            "cross_origin_authentication": True,
            "web_origins": [world.origin],
            "cross_origin_loc": f"{world.origin}/verify",
        },
        "inviting": {"organization_usage": "allow", "initiate_login_uri": "https://app.example.test/login"},
        "federated": {"addons": {"wsfed": {}}},
        "television": {},
        "demanding": {"second_factor_policy": "always"},
        "till": {},
    }
    for name, chosen in settings.items():
        _make_client(world, name, chosen)
    by_password = set(settings) - {"by code", "by text"}
    _enable(world, world.people, by_password)
    for strategy, names in (("email", {"by code", "every method"}), ("sms", {"by text", "every method"})):
        _enable(world, create_connection(tenant_id=world.tenant.pk, name=strategy, strategy=strategy), names)


def _take_passkeys(world: World) -> None:
    """Create an application and a connection with passkeys, and enable passkeys in the tenant. Other connections have no passkeys."""
    _make_client(world, "with passkeys", {})
    connection = people(world.tenant, world.clients["with passkeys"], name="passkeys", **PASSKEYS_ON)
    person(connection, email=PASSKEY_EMAIL)
    row = TenantSettings.objects.of(world.tenant.pk).get()
    row.second_factors = {**row.second_factors, "passkeys": True}
    row.save(update_fields=["second_factors"])


def _make_client(world: World, name: str, settings: dict[str, Any]) -> None:
    grants = ["authorization_code", "implicit", "password", _REALM_GRANT, *(LEGACY_GRANTS if name == "old" else ())]
    world.clients[name], world.secrets[name] = create_client(
        tenant_id=world.tenant.pk,
        name=APPLICATION,
        grant_types=grants,
        redirect_uris=f"{world.origin}/callback",
        is_first_party=name != "foreign",
        settings=settings,
    )


def _enable(world: World, connection: Connection, names: set[str]) -> None:
    changes = {"enabled_clients": [world.clients[name].client_id for name in names]}
    update_connection(tenant_id=world.tenant.pk, connection_id=connection.pk, changes=changes)


def _make_organizations(world: World) -> None:
    for name in ORGANIZATIONS:
        made = create_organization(tenant_id=world.tenant.pk, name=name.lower(), display_name=name)
        add_connection(tenant_id=world.tenant.pk, organization_id=made.pk, connection_id=world.people.pk)
        add_members(tenant_id=world.tenant.pk, organization_id=made.pk, user_ids=[world.user.user_id])
