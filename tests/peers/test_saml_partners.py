"""Unmodified third-party service providers log users in and out by SAML, in both bindings."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from authapi.models import Session
from authapi.protocols.saml.metadata import read_partner
from authapi.protocols.saml.names import EMAIL_NAME
from authapi.protocols.saml.partners import proposed
from authapi.tokens.saml_keys import prepare_key, published_certificates, rotate_key
from authapi.xml.bindings import HTTP_REDIRECT
from authapi.xml.certificates import pem_of
from config.launcher.peers import PLACE
from identity.models import Tenant
from tests.authapi.browser import Browser, Page
from tests.authapi.protocols.saml.conftest import Application, enable, saml_client
from tests.authapi.xml.signed_messages import key, trusted
from tests.factories.sign_in import people, person
from tests.peers.saml_partners import Partner, PartnerRefused, partner

pytestmark = pytest.mark.peer

DRIVERS = Path(__file__).parent / "drivers"
ENTITY = "urn:node"
PRIVATE = key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
BOTH = {"signResponse": True, "signAssertion": True}
REDIRECT_LOGOUT = {"logout": {"callback": "https://sp.example.test/slo"}, "binding": HTTP_REDIRECT}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Partner]:
    program = shutil.which("node")
    if program is None or not (PLACE / "node_modules" / "@node-saml").exists():
        pytest.skip("@node-saml/node-saml is not installed: make test-peers")
    # Copy the driver beside the packages: Node searches for packages in the directory of the program.
    driver = shutil.copy(DRIVERS / "node_saml.mjs", PLACE)
    with partner([program, str(driver)]) as running:
        yield running


@pytest.fixture
def application(tenant: Tenant) -> Application:
    client = saml_client(tenant, addons={**BOTH, "signingCert": pem_of(trusted())})
    return Application(tenant, client, person(people(tenant, client), given_name="Ada"), Browser(tenant))


def options(application: Application, **changes: Any) -> dict[str, Any]:
    """Return options for node-saml that contain only the names and URLs of both parties. Other options keep their defaults."""
    base = f"http://{application.browser.host}"
    return {
        "entryPoint": f"{base}{application.path}",
        "logoutUrl": f"{base}{application.path}/logout",
        "issuer": ENTITY,
        "callbackUrl": application.acs,
        "idpIssuer": f"urn:{application.browser.host}",
        "idpCert": [pem_of(each) for each in published_certificates(application.tenant.pk)],
        "privateKey": PRIVATE,
        "publicCert": pem_of(trusted()),
        "signatureAlgorithm": "sha256",
        "digestAlgorithm": "sha256",
        "audience": ENTITY,
        "validateInResponseTo": "always",
        **changes,
    }


def go(application: Application, address: str) -> Page:
    parts = urlsplit(address)
    page = application.browser.send("GET", f"{parts.path}?{parts.query}")
    return application.log_in(page) if page.status in (302, 303) and page.location.startswith("/u/login") else page


def test_node_saml_logs_a_user_in_by_redirect_with_its_defaults(node: Partner, application: Application) -> None:
    node("make", name="a", options=options(application))
    page = go(application, node("askByRedirect", name="a", relayState="/there?x=1"))
    fields = page.fields()
    read = node("readResponse", name="a", fields=fields)["profile"]
    assert (read["nameID"], read["nameIDFormat"]) == ("ada@example.test", EMAIL_NAME)
    assert read["issuer"] == f"urn:{application.browser.host}"
    assert read["attributes"]["http://schemas.xmlsoap.org/ws/2005/05/identity/claims/givenname"] == "Ada"
    assert fields["RelayState"] == "/there?x=1"
    assert read["sessionIndex"].startswith("_")
    with pytest.raises(PartnerRefused, match="InResponseTo"):
        node("readResponse", name="a", fields=fields)


def test_node_saml_logs_a_user_in_by_post(node: Partner, application: Application) -> None:
    node("make", name="a", options=options(application, authnRequestBinding="HTTP-POST"))
    asked = node("askByPost", name="a", relayState="x")
    page = application.log_in(application.browser.post(application.path, asked))
    assert node("readResponse", name="a", fields=page.fields())["profile"]["nameID"] == "ada@example.test"


@pytest.mark.parametrize(
    ("signed", "wanted"),
    [
        ({}, {"wantAuthnResponseSigned": False}),
        ({"signResponse": True}, {"wantAssertionsSigned": False}),
        ({"signatureAlgorithm": "rsa-sha512", "digestAlgorithm": "sha512", **BOTH}, {}),
        ({"signatureAlgorithm": "rsa-sha1", "digestAlgorithm": "sha1", **BOTH}, {}),
        ({"encryptionCert": pem_of(trusted())}, {"wantAuthnResponseSigned": False, "decryptionPvk": PRIVATE}),
        ({"encryptionCert": pem_of(trusted()), "encryptionAlgorithm": "aes256-cbc", **BOTH}, {"decryptionPvk": PRIVATE}),
    ],
    ids=["assertion", "response", "sha512", "sha1", "encrypted", "encrypted and both signed"],
)
def test_node_saml_accepts_signed_and_encrypted_assertions(
    node: Partner, application: Application, signed: dict[str, Any], wanted: dict[str, Any]
) -> None:
    application.set(**signed, signingCert=pem_of(trusted()))
    node("make", name="a", options=options(application, **wanted))
    page = go(application, node("askByRedirect", name="a", relayState=""))
    assert node("readResponse", name="a", fields=page.fields())["profile"]["nameID"] == "ada@example.test"


def test_node_saml_accepts_a_login_that_the_provider_starts(node: Partner, application: Application) -> None:
    application.set(**BOTH, audience=ENTITY)
    node("make", name="a", options=options(application, validateInResponseTo="never"))
    page = application.log_in(application.browser.get(application.path))
    assert node("readResponse", name="a", fields=page.fields())["profile"]["nameID"] == application.user.user_id


def test_node_saml_gets_the_reason_of_a_failed_login(node: Partner, application: Application) -> None:
    node("make", name="a", options=options(application, passive=True))
    page = go(application, node("askByRedirect", name="a", relayState=""))
    # The library treats the status NoPassive not as an error, but as the information that no user is logged in.
    assert node("readResponse", name="a", fields=page.fields()) == {"profile": None, "loggedOut": False}


def test_node_saml_logs_out_by_redirect_and_accepts_the_response_of_this_service(node: Partner, application: Application) -> None:
    application.set(**BOTH, **REDIRECT_LOGOUT, signingCert=pem_of(trusted()))
    node("make", name="a", options=options(application))
    profile = node("readResponse", name="a", fields=go(application, node("askByRedirect", name="a", relayState="")).fields())["profile"]
    page = go(application, node("logOut", name="a", profile=profile, relayState="bye"))
    query = urlsplit(page.location).query
    assert node("readRedirect", name="a", fields=dict(parse_qsl(query)), query=query) == {"profile": None, "loggedOut": True}
    assert not Session.objects.of(application.tenant.pk).exists()


def test_a_logout_at_one_node_saml_application_ends_the_login_at_another_application(node: Partner, application: Application) -> None:
    application.set(**BOTH, logout={"callback": "https://sp.example.test/slo"}, signingCert=pem_of(trusted()))
    members = {**BOTH, "logout": {"callback": "https://b.example.test/slo"}, "signingCert": pem_of(trusted())}
    client = saml_client(application.tenant, callbacks="https://b.example.test/acs", addons=members)
    enable(application.user.connection, client)
    other = Application(application.tenant, client, application.user, application.browser, "https://b.example.test/acs")
    profiles = {}
    for name, each in (("a", application), ("b", other)):
        # If the value were "always", the library would also require the id of a login request in the response to a logout.
        node("make", name=name, options=options(each, validateInResponseTo="ifPresent"))
        page = go(each, node("askByRedirect", name=name, relayState=""))
        profiles[name] = node("readResponse", name=name, fields=page.fields())["profile"]

    page = go(application, node("logOut", name="a", profile=profiles["a"], relayState="bye"))
    assert page.form_action() == "https://b.example.test/slo"
    fields = page.fields()
    told = node("readRequest", name="b", fields=fields)["profile"]
    assert (told["nameID"], told["sessionIndex"]) == (profiles["b"]["nameID"], profiles["b"]["sessionIndex"])
    page = go(other, node("answerLogout", name="b", profile=told, relayState=fields["RelayState"]))
    assert page.form_action() == "https://sp.example.test/slo"
    assert node("readResponse", name="a", fields=page.fields())["loggedOut"] is True


def test_logins_of_a_running_application_succeed_during_a_certificate_rollover(node: Partner, application: Application) -> None:
    def logs_in() -> str:
        page = go(application, node("askByRedirect", name="a", relayState=""))
        return str(node("readResponse", name="a", fields=page.fields())["profile"]["nameID"])

    node("make", name="a", options=options(application))
    assert logs_in() == "ada@example.test"
    prepare_key(application.tenant.pk)
    # The application loads the metadata again. The metadata now contains two certificates.
    node("make", name="a", options=options(application))
    assert logs_in() == "ada@example.test"
    rotate_key(application.tenant.pk)
    assert logs_in() == "ada@example.test"


def test_an_application_that_has_not_loaded_the_new_certificate_refuses_the_signature(node: Partner, application: Application) -> None:
    node("make", name="a", options=options(application))
    prepare_key(application.tenant.pk)
    rotate_key(application.tenant.pk)
    page = go(application, node("askByRedirect", name="a", relayState=""))
    with pytest.raises(PartnerRefused, match="signature"):
        node("readResponse", name="a", fields=page.fields())


def test_an_application_can_be_set_up_from_the_metadata_of_node_saml(node: Partner, tenant: Tenant) -> None:
    described = {
        "issuer": ENTITY,
        "callbackUrl": "https://sp.example.test/acs",
        "logoutCallbackUrl": "https://sp.example.test/slo",
        "privateKey": PRIVATE,
        "publicCerts": pem_of(trusted()),
        "decryptionPvk": PRIVATE,
        "decryptionCert": pem_of(trusted()),
        "wantAssertionsSigned": True,
        "identifierFormat": EMAIL_NAME,
    }
    found = proposed(read_partner(node("metadata", options=described).encode()), BOTH, encrypts=True)
    client = saml_client(tenant, callbacks=" ".join(found.callbacks), addons=dict(found.addon))
    application = Application(tenant, client, person(people(tenant, client)), Browser(tenant))
    node("make", name="a", options=options(application, decryptionPvk=PRIVATE))
    page = go(application, node("askByRedirect", name="a", relayState=""))
    assert node("readResponse", name="a", fields=page.fields())["profile"]["nameID"] == "ada@example.test"


# --- pysaml2 ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def pysaml2() -> Iterator[Partner]:
    python = PLACE / "python" / "bin" / "python"
    if not list(PLACE.glob("python/lib/*/site-packages/saml2")) or shutil.which("xmlsec1") is None:
        pytest.skip("pysaml2 or its xmlsec1 is not installed: make test-peers")
    with partner([str(python), "-W", "ignore", str(DRIVERS / "pysaml2_provider.py")]) as running:
        yield running


def configured(application: Application, directory: Path, **service: Any) -> dict[str, Any]:
    """Return a configuration of pysaml2 that knows this service only by its metadata."""
    (directory / "sp.key").write_text(PRIVATE)
    (directory / "sp.pem").write_text(pem_of(trusted()))
    described = application.browser.get(f"/samlp/metadata/{application.client.client_id}").body
    (directory / "idp.xml").write_bytes(described)
    pair = {"key_file": str(directory / "sp.key"), "cert_file": str(directory / "sp.pem")}
    return {
        "entityid": "urn:pysaml2",
        "xmlsec_binary": shutil.which("xmlsec1"),
        **pair,
        "encryption_keypairs": [pair],
        "allow_unknown_attributes": True,
        "metadata": {"local": [str(directory / "idp.xml")]},
        "service": {
            "sp": {
                "endpoints": {
                    "assertion_consumer_service": [[application.acs, "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"]],
                    "single_logout_service": [["https://sp.example.test/slo", "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"]],
                },
                "authn_requests_signed": True,
                "logout_requests_signed": True,
                "want_assertions_signed": True,
                "want_response_signed": False,
                "signing_algorithm": "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
                "digest_algorithm": "http://www.w3.org/2001/04/xmlenc#sha256",
                **service,
            }
        },
    }


def asked_by(pysaml2: Partner, application: Application, binding: str) -> tuple[str, Page]:
    """Let pysaml2 send a request in a binding. Return the id of the request, and the page with the response of this service."""
    asked = pysaml2("ask", name="a", binding=binding, provider=f"urn:{application.browser.host}", relay_state="/x")
    if binding == "redirect":
        return asked["id"], go(application, dict(asked["headers"])["Location"])
    form = Page(200, {}, [], asked["data"].encode())
    page = application.browser.post(urlsplit(form.form_action()).path, form.fields())
    return asked["id"], application.log_in(page) if page.status == 303 else page


@pytest.mark.parametrize("binding", ["redirect", "post"])
@pytest.mark.parametrize("members", [{}, BOTH, {"encryptionCert": pem_of(trusted())}], ids=["assertion", "both", "encrypted"])
def test_pysaml2_logs_a_user_in_with_the_metadata_of_this_service(
    pysaml2: Partner, application: Application, tmp_path: Path, binding: str, members: dict[str, Any]
) -> None:
    application.set(**members, signingCert=pem_of(trusted()))
    pysaml2("make", name="a", config=configured(application, tmp_path))
    request_id, page = asked_by(pysaml2, application, binding)
    fields = page.fields()
    read = pysaml2("readResponse", name="a", response=fields["SAMLResponse"], outstanding={request_id: "/x"})
    assert (read["issuer"], fields["RelayState"]) == (f"urn:{application.browser.host}", "/x")
    assert read["name"]
    assert ["Ada"] in read["attributes"].values()


def test_pysaml2_logs_a_user_out(pysaml2: Partner, application: Application, tmp_path: Path) -> None:
    application.set(logout={"callback": "https://sp.example.test/slo"}, signingCert=pem_of(trusted()))
    pysaml2("make", name="a", config=configured(application, tmp_path))
    request_id, page = asked_by(pysaml2, application, "redirect")
    read = pysaml2("readResponse", name="a", response=page.fields()["SAMLResponse"], outstanding={request_id: "/x"})
    place = f"http://{application.browser.host}{application.path}/logout"
    known = {"name_id": read["name"], "name_format": read["format"], "session_index": read["session_index"]}
    sent = pysaml2("logOut", name="a", binding="redirect", address=place, provider=read["issuer"], **known)
    page = go(application, dict(sent["headers"])["Location"])
    assert page.form_action() == "https://sp.example.test/slo"
    assert pysaml2("readLogoutAnswer", name="a", response=page.fields()["SAMLResponse"], binding="post") == "True"
    assert not Session.objects.of(application.tenant.pk).exists()
