"""SimpleSAMLphp from Debian in a real browser, as an application of this service and as the identity provider of a connection."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from authapi.models import Session, SignIn
from authapi.protocols.saml.metadata import read_partner
from authapi.protocols.saml.partners import proposed
from authapi.xml.certificates import pem_of
from identity.models import Tenant, User
from identity.services.connections import create_connection
from tests.authapi.protocols.saml.conftest import saml_client
from tests.authapi.xml.signed_messages import key, trusted
from tests.conformance.web_process import web_process
from tests.factories.sign_in import PASSWORD, people, person, web_client
from tests.peers import simplesamlphp as installed
from tests.peers.chromium import PROGRAM, Page, chromium
from tests.peers.simplesamlphp import SimpleSaml, simplesamlphp
from tests.peers.three_applications import listening, speak_oidc

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
    pytest.mark.skipif(bool(installed.MISSING), reason=f"not installed: {', '.join(installed.MISSING)}; make test-peers"),
]

EMAIL = "ada@example.test"


@pytest.fixture
def service(tenant: Tenant) -> Iterator[str]:
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
        yield f"http://127.0.0.1:{web.address[1]}"


@pytest.fixture
def partner(tmp_path: Path, tenant: Tenant) -> Iterator[SimpleSaml]:
    private = key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with simplesamlphp(tmp_path, key=private, certificate=pem_of(trusted()), provider=f"urn:{tenant.pk}.example.test") as running:
        yield running


@pytest.fixture
def page() -> Iterator[Page]:
    with chromium() as browser:
        yield browser.page()


def fetched(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=20) as answer:
        found: bytes = answer.read()
    return found


def reach(page: Page, condition: str, partner: SimpleSaml) -> None:
    try:
        page.until(condition, seconds=20)
    except AssertionError:
        lines = (partner.directory / "log" / "simplesamlphp.log").read_text().splitlines()[-15:]
        pytest.fail("\n".join([str(page.evaluate("location.href")), page.text(), *page.complaints, *lines]))


@pytest.mark.parametrize("encrypts", [False, True], ids=["signed", "encrypted"])
def test_simplesamlphp_logs_a_user_in_and_out_as_a_service_provider(
    encrypts: bool, tenant: Tenant, service: str, partner: SimpleSaml, page: Page
) -> None:
    found = proposed(read_partner(fetched(partner.service_metadata)), {}, encrypts=encrypts)
    assert ("signingCert" in found.addon, "encryptionCert" in found.addon) == (True, encrypts)
    client = saml_client(tenant, callbacks=" ".join(found.callbacks), addons=dict(found.addon))
    person(people(tenant, client), given_name="Ada")
    partner.log_in_at(fetched(f"{service}/samlp/metadata/{client.client_id}"))

    page.open(partner.own_page)
    reach(page, "document.querySelector('input[autocomplete=username]') !== null", partner)
    page.fill("input[autocomplete=username]", EMAIL)
    page.fill("input[type=password]", PASSWORD)
    page.click("form button[type=submit]")
    reach(page, f"location.origin === {json.dumps(partner.origin)} && document.body.innerText.includes({json.dumps(EMAIL)})", partner)
    assert "Ada" in page.text()
    assert Session.objects.of(tenant.pk).count() == 1

    page.open(f"{partner.own_page}&logout")
    reach(page, f"location.href.startsWith({json.dumps(partner.base + '/logout.php')})", partner)
    assert not Session.objects.of(tenant.pk).exists()
    assert not SignIn.objects.of(tenant.pk).filter(is_success=False).exists()


def test_simplesamlphp_logs_a_user_in_and_out_as_an_identity_provider(
    tenant: Tenant, service: str, partner: SimpleSaml, page: Page
) -> None:
    with listening("Shop") as shop:
        client, secret = web_client(tenant, redirect_uris=f"{shop.origin}/callback", post_logout_redirect_uris=f"{shop.origin}/")
        options = {"metadataXml": fetched(partner.provider_metadata).decode()}
        create_connection(tenant_id=tenant.pk, name="corp", strategy="samlp", enabled_clients=[client.client_id], options=options)
        partner.log_in_for(fetched(f"{service}/samlp/metadata?connection=corp"))
        speak_oidc(shop, service=service, client_id=client.client_id, secret=secret, connection="corp")

        page.open(f"{shop.origin}/login")
        reach(page, "document.querySelector('input[name=password]') !== null", partner)
        assert page.evaluate("location.origin") == partner.origin
        page.fill("input[name=username]", installed.USER)
        page.fill("input[name=password]", installed.PASSWORD)
        page.evaluate("document.querySelector('input[name=password]').form.submit()")
        reach(page, f"location.origin === {json.dumps(shop.origin)}", partner)
        assert page.text("p") == "grace@corp.example.test"
        user = User.objects.of(tenant.pk).get()
        assert (user.user_id, user.given_name) == ("samlp|corp|248289", "Grace")

        out = {"client_id": client.client_id, "returnTo": f"{shop.origin}/", "federated": ""}
        page.open(f"{service}/v2/logout?{urlencode(out)}")
        reach(page, f"location.origin === {json.dumps(shop.origin)}", partner)
        assert not Session.objects.of(tenant.pk).exists()
        assert not SignIn.objects.of(tenant.pk).filter(is_success=False).exists()
        # The session at the identity provider has also ended: SimpleSAMLphp shows its form for the password.
        page.open(f"{shop.origin}/login")
        reach(page, "document.querySelector('input[name=password]') !== null", partner)
