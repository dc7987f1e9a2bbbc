"""Three applications with three protocols share one session in a real browser. A logout at one application ends all logins."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from authapi import tasks
from authapi.models import Session, SessionClient, SignIn
from authapi.protocols.oauth.logout_notices import due_notices
from authapi.tokens.saml_keys import published_certificates
from authapi.xml.certificates import pem_of
from config.launcher.peers import PLACE, place_of
from identity.models import Tenant
from tests.authapi.protocols.saml.requests_of_applications import addon
from tests.authapi.xml.signed_messages import key, trusted
from tests.conformance.web_process import web_process
from tests.factories.sign_in import PASSWORD, people, person, web_client
from tests.peers.chromium import PROGRAM, Page, chromium
from tests.peers.saml_partners import Partner, partner
from tests.peers.three_applications import Listener, listening, speak_oidc, speak_saml, speak_wsfed

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
]

DRIVERS = Path(__file__).parent / "drivers"
PRIVATE = key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
EMAIL = "ada@example.test"


@dataclass
class World:
    """Three applications of one tenant, and a tab of the browser."""

    tenant: Tenant
    page: Page
    shop: Listener
    payroll: Listener
    archive: Listener

    @property
    def applications(self) -> tuple[Listener, ...]:
        return (self.shop, self.payroll, self.archive)

    def reach(self, application: Listener, path: str) -> None:
        """Open a page of an application, and wait until the browser is back at the application after all redirects."""
        self.page.open(f"{application.origin}{path}")
        self.arrive(application)

    def arrive(self, application: Listener) -> None:
        try:
            self.page.until(f"location.origin === {json.dumps(application.origin)} && document.readyState === 'complete'", seconds=20)
        except AssertionError:
            seen = (
                self.page.evaluate("location.href"),
                self.page.text(),
                self.page.complaints,
                [each.failures for each in self.applications],
            )
            pytest.fail(str(seen))

    def log_in(self) -> None:
        """Log in at the shop with the password, and then at the other applications, which require no input."""
        self.page.open(f"{self.shop.origin}/login")
        self.page.fill("input[autocomplete=username]", EMAIL)
        self.page.fill("input[type=password]", PASSWORD)
        self.page.click("form button[type=submit]")
        self.arrive(self.shop)
        self.reach(self.payroll, "/login")
        self.reach(self.archive, "/login")

    def shown(self) -> dict[str, str]:
        """Return the text that each application shows: the logged-in user, or a request to log in."""
        said = {}
        for application in self.applications:
            self.page.open(f"{application.origin}/")
            said[application.title] = self.page.text("p")
        return said


@pytest.fixture
def node() -> Iterator[Partner]:
    yield from _driven("node_saml.mjs", PLACE, "@node-saml")


@pytest.fixture
def federation() -> Iterator[Partner]:
    yield from _driven("federation.cjs", place_of("federation"), "passport-wsfed-saml2")


def _driven(driver: str, place: Path, package: str) -> Iterator[Partner]:
    program = shutil.which("node")
    if program is None or not (place / "node_modules" / package).exists():
        pytest.skip(f"{package} is not installed: make test-peers")
    # Copy the driver beside the packages: Node searches for packages in the directory of the program.
    with partner([program, str(shutil.copy(DRIVERS / driver, place))]) as running:
        yield running


@pytest.fixture
def world(tenant: Tenant, node: Partner, federation: Partner) -> Iterator[World]:
    with ExitStack() as stack:
        shop, payroll, archive = (stack.enter_context(listening(title)) for title in ("Shop", "Payroll", "Archive"))
        told = {"oidc_logout": {"backchannel_logout_urls": [f"{shop.origin}/backchannel"]}}
        at_shop, secret = web_client(
            tenant, redirect_uris=f"{shop.origin}/callback", post_logout_redirect_uris=f"{shop.origin}/", settings=told
        )
        signed = {"signResponse": True, "signAssertion": True, "signingCert": pem_of(trusted())}
        payroll_addon = addon(**signed, logout={"callback": f"{payroll.origin}/slo"})
        at_payroll, _ = web_client(tenant, redirect_uris=f"{payroll.origin}/acs", settings=payroll_addon)
        at_archive, _ = web_client(
            tenant,
            redirect_uris=f"{archive.origin}/wsfed",
            post_logout_redirect_uris=f"{archive.origin}/",
            settings={"addons": {"wsfed": {}}},
        )
        person(people(tenant, at_shop, at_payroll, at_archive))
        certificates = [pem_of(each) for each in published_certificates(tenant.pk)]

        web = stack.enter_context(web_process("uvicorn", LOCALHOST_TENANT=tenant.pk))
        service = f"http://127.0.0.1:{web.address[1]}"
        speak_oidc(shop, service=service, client_id=at_shop.client_id, secret=secret)
        speak_saml(payroll, node, options=_saml_options(payroll, f"{service}/samlp/{at_payroll.client_id}", certificates))
        known = {
            "realm": f"urn:{at_archive.client_id}",
            "identityProviderUrl": f"{service}/wsfed",
            "cert": re.sub(r"-----[A-Z ]+-----|\s", "", certificates[0]),
            "wreply": f"{archive.origin}/wsfed",
        }
        speak_wsfed(archive, federation, service=service, options=known)
        page = stack.enter_context(chromium()).page()
        yield World(tenant, page, shop, payroll, archive)


def _saml_options(payroll: Listener, entry: str, certificates: list[str]) -> dict[str, Any]:
    return {
        "entryPoint": entry,
        "logoutUrl": f"{entry}/logout",
        "issuer": "urn:payroll",
        "audience": "urn:payroll",
        "callbackUrl": f"{payroll.origin}/acs",
        "idpCert": certificates,
        "privateKey": PRIVATE,
        "publicCert": pem_of(trusted()),
        "signatureAlgorithm": "sha256",
        "digestAlgorithm": "sha256",
        # If the value were "always", the library would also require the id of a login request in the response to a logout.
        "validateInResponseTo": "ifPresent",
    }


def tell_by_the_back_channel() -> None:
    """Send the back-channel notices that wait, as a worker does."""
    for notice in due_notices():
        tasks.send_logout_notice(str(notice))


@pytest.mark.parametrize("start", ["Shop", "Payroll", "Archive"])
def test_one_password_logs_in_at_all_applications_and_one_logout_ends_all_logins(world: World, start: str) -> None:
    world.log_in()
    assert world.shown() == {"Shop": EMAIL, "Payroll": EMAIL, "Archive": EMAIL}
    session = Session.objects.of(world.tenant.pk).get()
    assert SessionClient.objects.of(world.tenant.pk).filter(session=session).count() == 3

    (first,) = (each for each in world.applications if each.title == start)
    world.reach(first, "/logout")
    tell_by_the_back_channel()

    assert world.shown() == dict.fromkeys(("Shop", "Payroll", "Archive"), "Please log in.")
    assert not Session.objects.of(world.tenant.pk).exists()
    assert "GET /wsfed wa" in world.archive.heard
    assert ("POST /slo RelayState SAMLRequest" in world.payroll.heard) is (start != "Payroll")
    assert [each.failures for each in world.applications] == [[], [], []]
    assert not SignIn.objects.of(world.tenant.pk).filter(is_success=False).exists()
    for application in world.applications:
        world.page.open(f"{application.origin}/login")
        world.page.until("document.querySelector('input[type=password]') !== null")
