"""Users of this service log in at unmodified third-party SAML providers. A third-party WS-Federation client uses logins of this service."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from authapi.models import Session, SignIn
from authapi.services.clients import update_client
from authapi.tokens.saml_keys import published_certificates
from authapi.upstream.saml.metadata import read_metadata
from authapi.xml.certificates import pem_of
from config.launcher.peers import PLACE, place_of
from identity.models import Tenant, User
from identity.services.connections import create_connection, update_connection
from tests.factories.saml_login import SamlLogin, fields_of
from tests.factories.saml_provider import SIGNING
from tests.factories.sign_in import CALLBACK, PASSWORD, people, person, web_client
from tests.peers.saml_partners import Partner, PartnerRefused, partner

pytestmark = pytest.mark.peer

DRIVERS = Path(__file__).parent / "drivers"
IDP = "https://idp.example.test"
PRIVATE = SIGNING.private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
CERTIFICATE = SIGNING.certificate.public_bytes(Encoding.PEM).decode()
REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
RETURN_TO = "https://app.example.test/bye"


def connected(tenant: Tenant, **options: Any) -> SamlLogin:
    """Create a client whose users log in through a SAML connection with these options."""
    client, _ = web_client(tenant)
    connection = create_connection(tenant_id=tenant.pk, name="corp", strategy="samlp", enabled_clients=[client.client_id], options=options)
    return SamlLogin(tenant, client, connection)


class _Page:
    """A page of a partner, in the form that `fields_of` expects."""

    def __init__(self, text: str) -> None:
        self.content = text.encode()


def sent_by(elsewhere: Any) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(elsewhere["Location"]).query))


def asked_by(sent: dict[str, str], binding: str) -> dict[str, Any]:
    """Return a request of this service in the form that pysaml2 expects, with the separate signature of a redirect."""
    signature = {"sigalg": sent["SigAlg"], "signature": sent["Signature"]} if "SigAlg" in sent else {}
    return {"request": sent["SAMLRequest"], "relay_state": sent["RelayState"], "binding": binding, "signature": signature}


def come_back(login: SamlLogin, form: str) -> Any:
    """Submit the form on the page of a partner, as a browser does."""
    fields = {name.replace("\n", ""): value for name, value in fields_of(_Page(form)).items()}
    assert fields.pop("action") == login.acs
    return login.browser.post("/login/callback?connection=corp", fields)


def failure(tenant: Tenant) -> str:
    return SignIn.objects.of(tenant.pk).filter(is_success=False).latest("created_at").description


# pysaml2.


@pytest.fixture
def pysaml2() -> Iterator[Partner]:
    python = PLACE / "python" / "bin" / "python"
    if not list(PLACE.glob("python/lib/*/site-packages/saml2")) or shutil.which("xmlsec1") is None:
        pytest.skip("pysaml2 or its xmlsec1 is not installed: make test-peers")
    with partner([str(python), "-W", "ignore", str(DRIVERS / "pysaml2_identity_provider.py")]) as running:
        yield running


def configured(directory: Path, **more: Any) -> dict[str, Any]:
    (directory / "idp.key").write_text(PRIVATE)
    (directory / "idp.pem").write_text(CERTIFICATE)
    return {
        "entityid": f"{IDP}/metadata",
        "xmlsec_binary": shutil.which("xmlsec1"),
        "key_file": str(directory / "idp.key"),
        "cert_file": str(directory / "idp.pem"),
        "service": {
            "idp": {
                "endpoints": {
                    "single_sign_on_service": [[f"{IDP}/sso", REDIRECT], [f"{IDP}/sso-post", POST]],
                    "single_logout_service": [[f"{IDP}/slo", REDIRECT]],
                },
                "want_authn_requests_signed": True,
                "signing_algorithm": "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
                "digest_algorithm": "http://www.w3.org/2001/04/xmlenc#sha256",
                "policy": {"default": {"attribute_restrictions": None, "name_form": "urn:oasis:names:tc:SAML:2.0:attrname-format:uri"}},
            }
        },
        **more,
    }


@pytest.fixture
def known(pysaml2: Partner, tenant: Tenant, tmp_path: Path) -> SamlLogin:
    """Configure pysaml2 and a connection so that each party knows the other only by its metadata."""
    login = connected(tenant, metadataXml=pysaml2("metadata", config=configured(tmp_path)))
    (tmp_path / "sp.xml").write_bytes(login.browser.get("/samlp/metadata", {"connection": "corp"}).content)
    pysaml2("make", name="a", config=configured(tmp_path, metadata={"local": [str(tmp_path / "sp.xml")]}))
    return login


IDENTITY = {"mail": ["ada@corp.example.test"], "givenName": ["Ada"], "sn": ["Lovelace"]}


@pytest.mark.parametrize("binding", ["redirect", "post"])
@pytest.mark.parametrize(
    "signed",
    [
        {"sign_assertion": True, "sign_response": False},
        {"sign_assertion": False, "sign_response": True},
        {"sign_assertion": True, "sign_response": True},
    ],
    ids=["assertion", "response", "both"],
)
def test_pysaml2_logs_a_user_in_with_the_metadata_of_both_parties(
    pysaml2: Partner, known: SamlLogin, binding: str, signed: dict[str, Any]
) -> None:
    if binding == "post":
        options = {**known.connection.options, "protocolBinding": POST}
        update_connection(tenant_id=known.tenant.pk, connection_id=known.connection.pk, changes={"options": options})
    elsewhere = known.go()
    sent = sent_by(elsewhere) if binding == "redirect" else fields_of(elsewhere)
    answer = pysaml2("answer", name="a", user="248289", identity=IDENTITY, **asked_by(sent, binding), **signed)
    assert (answer["issuer"], answer["destination"]) == (known.entity_id, known.acs)
    assert "code" in known.told(come_back(known, answer["form"])), failure(known.tenant)
    user = User.objects.of(known.tenant.pk).get()
    assert (user.user_id, user.email, user.given_name) == ("samlp|corp|248289", "ada@corp.example.test", "Ada")


def test_a_response_that_pysaml2_encrypts_with_triple_des_is_refused_with_an_explanation(pysaml2: Partner, known: SamlLogin) -> None:
    asked = asked_by(sent_by(known.go()), "redirect")
    answer = pysaml2("answer", name="a", user="248289", identity=IDENTITY, sign_response=True, encrypt_assertion=True, **asked)
    assert "code" not in known.told(come_back(known, answer["form"]))
    assert "encrypted with an algorithm that is not allowed" in failure(known.tenant)


def test_pysaml2_can_start_a_login_if_the_connection_allows_it(pysaml2: Partner, known: SamlLogin) -> None:
    unasked = {"service": known.entity_id, "destination": known.acs, "user": "248289", "identity": IDENTITY}
    form = pysaml2("unasked", name="a", sign_assertion=True, sign_response=True, **unasked)["form"]
    assert come_back(known, form).status_code == 403
    query = f"response_type=code&scope=openid&redirect_uri={CALLBACK}"
    initiated = {"enabled": True, "client_id": known.client.client_id, "client_authorizequery": query}
    options = {**known.connection.options, "idpinitiated": initiated}
    update_connection(tenant_id=known.tenant.pk, connection_id=known.connection.pk, changes={"options": options})
    assert "code" in known.told(come_back(known, form)), failure(known.tenant)


def test_a_logout_ends_the_login_at_pysaml2_and_its_response_is_accepted(pysaml2: Partner, known: SamlLogin) -> None:
    update_client(tenant_id=known.tenant.pk, client_id=known.client.client_id, changes={"post_logout_redirect_uris": RETURN_TO})
    sent = sent_by(known.go())
    answer = pysaml2("answer", name="a", user="248289", identity=IDENTITY, sign_response=True, **asked_by(sent, "redirect"))
    known.told(come_back(known, answer["form"]))
    asked_out = {"client_id": known.client.client_id, "returnTo": RETURN_TO, "federated": ""}
    out = sent_by(known.browser.get("/v2/logout", asked_out, headers=NAVIGATION))
    signature = {"sigalg": out["SigAlg"], "signature": out["Signature"]}
    given = {"request": out["SAMLRequest"], "binding": "redirect", "relay_state": out["RelayState"], "signature": signature}
    told = pysaml2("readLogout", name="a", **given)
    assert told["name"] == "248289"
    assert not Session.objects.of(known.tenant.pk).exists()
    location = dict(told["headers"])["Location"]
    back = known.browser.get(f"/logout?{urlsplit(location).query}")
    assert back["Location"] == RETURN_TO
    assert not SignIn.objects.of(known.tenant.pk).filter(is_success=False).exists()


# npm: samlp and passport-wsfed-saml2.


@pytest.fixture
def federation() -> Iterator[Partner]:
    program, place = shutil.which("node"), place_of("federation")
    if program is None or not (place / "node_modules" / "samlp").exists():
        pytest.skip("samlp and passport-wsfed-saml2 are not installed: make test-peers")
    # Copy the driver beside the packages: Node searches for packages in the directory of the program.
    driver = shutil.copy(DRIVERS / "federation.cjs", place)
    with partner([program, str(driver)]) as running:
        yield running


PERSON = {
    "id": "248289",
    "displayName": "Ada Lovelace",
    "name": {"familyName": "Lovelace", "givenName": "Ada"},
    "emails": [{"type": "work", "value": "ada@corp.example.test"}],
}


@pytest.mark.parametrize(
    "signed",
    [
        {},
        {"signResponse": True},
        {"signResponse": True, "signAssertion": False},
        {"encryptionCert": None},
    ],
    ids=["assertion", "both", "response", "encrypted"],
)
def test_the_npm_package_samlp_logs_a_user_in(federation: Partner, tenant: Tenant, signed: dict[str, Any]) -> None:
    login = connected(tenant, signInEndpoint=f"{IDP}/samlp", signingCert=CERTIFICATE)
    if "encryptionCert" in signed:
        certificate = published_certificates(tenant.pk)[0]
        public = certificate.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        signed = {"encryptionCert": pem_of(certificate), "encryptionPublicKey": public}
    options = {"issuer": f"{IDP}/metadata", "cert": CERTIFICATE, "key": PRIVATE, "recipient": login.acs, "destination": login.acs, **signed}
    page = federation("samlAnswer", options=options, query=sent_by(login.go()), user=PERSON, reply=login.acs)
    assert "code" in login.told(come_back(login, page)), failure(tenant)
    user = User.objects.of(tenant.pk).get()
    assert (user.user_id, user.email, user.family_name) == ("samlp|corp|248289", "ada@corp.example.test", "Lovelace")


def test_a_response_of_samlp_with_sha1_is_refused_with_an_explanation(federation: Partner, tenant: Tenant) -> None:
    login = connected(tenant, signInEndpoint=f"{IDP}/samlp", signingCert=CERTIFICATE)
    old = {"signatureAlgorithm": "rsa-sha1", "digestAlgorithm": "sha1"}
    options = {"issuer": f"{IDP}/metadata", "cert": CERTIFICATE, "key": PRIVATE, "recipient": login.acs, "destination": login.acs, **old}
    page = federation("samlAnswer", options=options, query=sent_by(login.go()), user=PERSON, reply=login.acs)
    assert "code" not in login.told(come_back(login, page))
    assert "SHA-1" in failure(tenant)


def test_the_metadata_of_samlp_is_accepted(federation: Partner) -> None:
    options = {
        "issuer": f"{IDP}/metadata",
        "cert": CERTIFICATE,
        "endpointPath": "/samlp",
        "redirectEndpointPath": "/samlp",
        "postEndpointPath": "/samlp",
    }
    found = read_metadata(federation("samlMetadata", options=options).encode(), allows_http=True)
    assert found.entity_id == f"{IDP}/metadata"
    assert found.certificates == (SIGNING.known,)


REPLY = "https://app.example.test/wsfed"


@pytest.mark.parametrize("addon", [{}, {"signatureAlgorithm": "rsa-sha1", "digestAlgorithm": "sha1"}], ids=["sha256", "sha1"])
def test_passport_wsfed_saml2_logs_a_user_in(federation: Partner, tenant: Tenant, addon: dict[str, Any]) -> None:
    client, _ = web_client(tenant, redirect_uris=REPLY, settings={"addons": {"wsfed": addon}})
    person(people(tenant, client))
    login = SamlLogin(tenant, client, create_connection(tenant_id=tenant.pk, name="unused", strategy="samlp"))
    certificate = re.sub(r"-----[A-Z ]+-----|\s", "", pem_of(published_certificates(tenant.pk)[0]))
    realm = f"urn:{client.client_id}"
    options = {"realm": realm, "identityProviderUrl": f"{login.base}wsfed", "cert": certificate, "wreply": REPLY}
    federation("make", name="a", options=options)
    parts = urlsplit(federation("ask", name="a"))
    page = login.browser.get(f"{parts.path}?{parts.query}")
    form = login.browser.get(page["Location"])
    fields = fields_of(form)
    answer = login.browser.post(page["Location"], {**fields, "username": "ada@example.test", "password": PASSWORD})
    posted = fields_of(answer)
    assert posted.pop("action") == REPLY
    read = federation("read", name="a", fields=posted, address=REPLY)
    assert read["http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"] == "ada@example.test"
    assert read["issuer"] == f"urn:{tenant.pk}.example.test"
    changed = {**posted, "wresult": posted["wresult"].replace("ada@example.test", "eve@example.test")}
    with pytest.raises(PartnerRefused):
        federation("read", name="a", fields=changed, address=REPLY)


def test_passport_wsfed_saml2_gets_the_reason_of_a_refused_token(federation: Partner, tenant: Tenant) -> None:
    client, _ = web_client(tenant, redirect_uris=REPLY, settings={"addons": {"wsfed": {}}})
    people(tenant, client)
    login = SamlLogin(tenant, client, create_connection(tenant_id=tenant.pk, name="unused", strategy="samlp"))
    certificate = re.sub(r"-----[A-Z ]+-----|\s", "", pem_of(published_certificates(tenant.pk)[0]))
    federation(
        "make", name="a", options={"realm": f"urn:{client.client_id}", "identityProviderUrl": "https://x.example.test", "cert": certificate}
    )
    posted = fields_of(login.browser.get(f"/wsfed/{client.client_id}", {"whr": "urn:unknown"}))
    with pytest.raises(PartnerRefused) as refused:
        federation("read", name="a", fields=posted, address=REPLY)
    assert "invalid_request" in str(refused.value)


def test_passport_wsfed_saml2_accepts_the_jwt_of_this_service(federation: Partner, tenant: Tenant) -> None:
    client, _ = web_client(tenant, redirect_uris=REPLY, settings={"addons": {"wsfed": {"tokenType": "plain_jwt"}}})
    person(people(tenant, client))
    login = SamlLogin(tenant, client, create_connection(tenant_id=tenant.pk, name="unused", strategy="samlp"))
    page = login.browser.get(f"/wsfed/{client.client_id}")
    fields = fields_of(login.browser.get(page["Location"]))
    answer = login.browser.post(page["Location"], {**fields, "username": "ada@example.test", "password": PASSWORD})
    options = {"realm": f"urn:{client.client_id}", "identityProviderUrl": "https://x.example.test", "jwt": {"algorithms": ["RS256"]}}
    federation("make", name="a", options={**options, "cert": pem_of(published_certificates(tenant.pk)[0])})
    read = federation("read", name="a", fields=fields_of(answer), address=REPLY)
    assert read["aud"] == f"urn:{client.client_id}"
    assert read["http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"] == "ada@example.test"
