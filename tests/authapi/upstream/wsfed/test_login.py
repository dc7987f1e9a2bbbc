"""Logins at AD FS and Entra over WS-Federation: options, tokens, the request and the answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from authapi.failures.logins import LoginCase
from authapi.models import RefusedMessage, Session, SignIn
from authapi.tokens.saml_keys import published_certificates
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.facts import BEARER, wire_instant
from authapi.upstream.saml.metadata import MetadataUnreadable
from authapi.upstream.saml.options import OptionsInvalid
from authapi.upstream.saml.responses import UnknownSigner
from authapi.upstream.wsfed.metadata import WSFED, read_federation_metadata
from authapi.upstream.wsfed.options import is_wsfed, read_options
from authapi.upstream.wsfed.responses import Expected, accepted_token
from authapi.xml.building import element
from authapi.xml.names import SAML, qualified
from authapi.xml.parsing import Element
from identity.models import Tenant, User
from identity.services.connections import create_connection
from identity.services.failures import Invalid
from tests.factories.provider import address_of_logout
from tests.factories.saml_login import SamlLogin, saml_login
from tests.factories.saml_provider import OTHER, SIGNING, key_pair
from tests.factories.sign_in import web_client
from tests.factories.wsfed_provider import ENDPOINT, ENTITY_ID, Token, federation_metadata

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
REALM = "urn:auth0:acme:corp"


# Tokens.


def token(**changes: Any) -> Token:
    return Token(**{"realm": REALM, "now": NOW, **changes})


def judged(given: Token, **more: Any) -> Any:
    expected = Expected(issuer=ENTITY_ID, realm=REALM, now=NOW)
    return accepted_token(given.result().encode(), [SIGNING.known], expected, **more).assertion.statement


def why(given: Token) -> str:
    with pytest.raises(UpstreamFailed) as refused:
        judged(given)
    return refused.value.detail


@pytest.mark.parametrize("is_saml2", [False, True])
@pytest.mark.parametrize("is_collection", [False, True])
def test_both_versions_of_saml_assertions_and_of_ws_trust_are_read(is_saml2: bool, is_collection: bool) -> None:
    statement = judged(token(is_saml2=is_saml2, is_collection=is_collection))
    assert statement.name_id.value == "CORP\\ada"
    assert statement.attributes["http://schemas.xmlsoap.org/ws/2005/05/identity/claims/upn"] == ("ada@corp.example.test",)


@pytest.mark.parametrize("is_saml2", [False, True])
def test_an_encrypted_token_is_decrypted(is_saml2: bool) -> None:
    mine = key_pair("us.example.test")
    assert judged(token(is_saml2=is_saml2, encrypts_for=mine.certificate), keys=[mine.private]).name_id.value == "CORP\\ada"


def _rename(tree: Element) -> None:
    for name in tree.iter("{urn:oasis:names:tc:SAML:1.0:assertion}NameIdentifier"):
        name.text = "CORP\\eve"


def _unsign(tree: Element) -> None:
    tree.remove(tree[-1])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"realm": "urn:another"}, f"must be '{REALM}'"),
        ({"issuer": "http://attacker.example.test"}, "The Issuer is 'http://attacker.example.test'"),
        ({"now": NOW - timedelta(hours=2)}, "Compare the clocks"),
        ({"now": NOW + timedelta(hours=2)}, "Compare the clocks"),
        ({"lifetime": timedelta(days=3)}, "more than a day"),
        ({"signature": "http://www.w3.org/2000/09/xmldsig#rsa-sha1"}, "SHA-1"),
        ({"spoil": _rename}, "changed after it was signed"),
        ({"spoil": _unsign}, "not signed"),
        ({"encrypts_for": OTHER.certificate}, "encrypted for another key"),
    ],
)
def test_an_invalid_token_is_refused_with_an_explanation(changes: dict[str, Any], told: str) -> None:
    assert told in why(token(**changes))


@pytest.mark.parametrize("ends", [NOW + timedelta(hours=1), NOW - timedelta(minutes=30)])
def test_a_saml_2_token_must_have_a_valid_bearer_confirmation(ends: datetime) -> None:
    method = "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key" if ends > NOW else BEARER
    confirmation = element(
        qualified(SAML, "SubjectConfirmation"),
        {"Method": method},
        element(qualified(SAML, "SubjectConfirmationData"), {"NotOnOrAfter": wire_instant(ends)}),
    )

    def confirm(tree: Element) -> None:
        subject = tree.find(qualified(SAML, "Subject"))
        assert subject is not None
        subject[-1:] = [confirmation]

    assert "SubjectConfirmation" in why(token(is_saml2=True, change=confirm))


def test_the_error_for_a_token_signed_by_an_unknown_key_names_the_certificate() -> None:
    with pytest.raises(UnknownSigner) as refused:
        judged(token(key=OTHER))
    assert "other.example.test" in refused.value.detail


def test_a_fault_is_reported_with_the_text_of_the_provider() -> None:
    for fault in (
        '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body><s:Fault><s:Reason><s:Text>No seat.</s:Text></s:Reason>'
        "</s:Fault></s:Body></s:Envelope>",
        '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault><faultstring>No seat.</faultstring></s:Fault>'
        "</s:Body></s:Envelope>",
    ):
        with pytest.raises(UpstreamFailed) as refused:
            accepted_token(fault.encode(), [SIGNING.known], Expected(ENTITY_ID, REALM, NOW))
        assert (refused.value.case, refused.value.detail) == (LoginCase.UPSTREAM_DENIED, "No seat.")


@pytest.mark.parametrize("result", ["", "<a/>", "no xml", "<!DOCTYPE a><a/>"])
def test_an_invalid_response_is_refused(result: str) -> None:
    with pytest.raises(UpstreamFailed):
        accepted_token(result.encode(), [SIGNING.known], Expected(ENTITY_ID, REALM, NOW))


# Options and metadata.


def test_the_option_for_ad_fs_is_a_host_or_the_url_of_a_metadata_document() -> None:
    path = "/FederationMetadata/2007-06/FederationMetadata.xml"
    assert read_options("adfs", {"adfs_server": "adfs.example.test"}).metadata_url == f"https://adfs.example.test{path}"
    assert read_options("adfs", {"adfs_server": "https://adfs.example.test/"}).metadata_url == f"https://adfs.example.test{path}"
    assert read_options("adfs", {"adfs_server": "https://adfs.example.test/m.xml"}).metadata_url == "https://adfs.example.test/m.xml"
    with pytest.raises(OptionsInvalid):
        read_options("adfs", {"adfs_server": "http://adfs.example.test"})


def test_an_entra_connection_uses_ws_federation_if_it_is_selected() -> None:
    asked = {"client_id": "c", "tenant_domain": "corp.example.test", "waad_protocol": "ws-federation"}
    assert is_wsfed("waad", asked)
    assert not is_wsfed("waad", {"client_id": "c"})
    found = read_options("waad", asked)
    assert found.metadata_url.startswith("https://login.microsoftonline.com/corp.example.test/FederationMetadata/")
    assert found.realm == "spn:c"


@pytest.mark.parametrize("domain", ["common", "Organizations", "a/b", "a b"])
def test_a_domain_that_names_no_single_entra_directory_is_refused(tenant: Tenant, domain: str) -> None:
    with pytest.raises(Invalid):
        create_connection(
            tenant_id=tenant.pk,
            name="entra",
            strategy="waad",
            options={"client_id": "c", "tenant_domain": domain, "waad_protocol": "ws-federation"},
        )


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (federation_metadata(entity_id="https://sts.windows.net/{tenantid}/"), "placeholder"),
        (federation_metadata(endpoint="javascript:alert(1)"), "PassiveRequestorEndpoint"),
        (federation_metadata(key_pair(bits=1024)), "no usable certificate"),
        (b"<html/>", "begins with html"),
        (b"<EntityDescriptor xmlns='urn:oasis:names:tc:SAML:2.0:metadata' entityID='x'/>", "no security token service"),
    ],
    ids=["placeholder", "script address", "short key", "html", "another role"],
)
def test_the_error_for_an_unusable_document_explains_why(raw: bytes, words: str) -> None:
    with pytest.raises(MetadataUnreadable, match=words):
        read_federation_metadata(raw)


def test_the_service_and_its_certificates_are_read_from_a_metadata_document() -> None:
    found = read_federation_metadata(federation_metadata(SIGNING, OTHER))
    assert (found.entity_id, found.sign_in, found.certificates) == (ENTITY_ID, {WSFED: ENDPOINT}, (SIGNING.known, OTHER.known))


# The request and the answer.


@pytest.fixture
def login(tenant: Tenant) -> SamlLogin:
    client, _ = web_client(tenant)
    connection = create_connection(
        tenant_id=tenant.pk,
        name="corp",
        strategy="adfs",
        enabled_clients=[client.client_id],
        options={"fedMetadataXml": federation_metadata().decode(), "user_id_attribute": "upn"},
    )
    return SamlLogin(tenant, client, connection)


def leave(login: SamlLogin, **parameters: str) -> dict[str, str]:
    elsewhere = login.go(**parameters)
    assert elsewhere.status_code == 302, elsewhere.content
    assert elsewhere["Location"].startswith(ENDPOINT)
    return dict(parse_qsl(urlsplit(elsewhere["Location"]).query))


def come_back(login: SamlLogin, sent: dict[str, str], **changes: Any) -> Any:
    result = Token(**{"realm": login.entity_id, **changes}).result()
    return login.browser.post("/login/callback", {"wa": "wsignin1.0", "wresult": result, "wctx": sent["wctx"]})


def test_the_request_contains_our_realm_and_the_address_for_the_answer(login: SamlLogin) -> None:
    sent = leave(login, login_hint="ada@corp.example.test", prompt="login")
    assert (sent["wa"], sent["wtrealm"], sent["wreply"]) == ("wsignin1.0", login.entity_id, f"{login.base}login/callback")
    assert (sent["wfresh"], sent["username"]) == ("0", "ada@corp.example.test")


def test_a_login_creates_the_user(login: SamlLogin) -> None:
    assert "code" in login.told(come_back(login, leave(login)))
    user = User.objects.of(login.tenant.pk).get()
    assert (user.user_id, user.email) == ("adfs|corp|ada@corp.example.test", "ada@corp.example.test")


def test_a_token_is_accepted_once(login: SamlLogin) -> None:
    assert "code" in login.told(come_back(login, leave(login), token_id="_one"))
    Session.objects.of(login.tenant.pk).delete()
    assert "code" not in login.told(come_back(login, leave(login), token_id="_one"))
    assert "was used before" in SignIn.objects.of(login.tenant.pk).filter(is_success=False).latest("created_at").description


def test_a_token_encrypted_for_the_tenant_is_decrypted(login: SamlLogin) -> None:
    (certificate,) = published_certificates(login.tenant.pk)
    assert "code" in login.told(come_back(login, leave(login), encrypts_for=certificate))


def test_the_sign_in_log_contains_the_reason_of_a_refusal_and_the_token(login: SamlLogin) -> None:
    assert "code" not in login.told(come_back(login, leave(login), key=OTHER))
    line = SignIn.objects.of(login.tenant.pk).filter(is_success=False).latest("created_at")
    assert "other.example.test" in line.description
    assert "RequestSecurityTokenResponse" in RefusedMessage.objects.of(login.tenant.pk).get(line_id=line.pk).text


def test_a_token_that_was_not_requested_is_refused(login: SamlLogin) -> None:
    assert come_back(login, {"wctx": ""}).status_code == 400
    assert not User.objects.of(login.tenant.pk).exists()


def test_an_answer_in_another_browser_is_refused(login: SamlLogin) -> None:
    sent = leave(login)
    login.browser = login.new_browser()
    login.browser.get(
        "/authorize", {"response_type": "code", "client_id": login.client.client_id, "redirect_uri": "https://app.example.test/callback"}
    )
    assert come_back(login, sent).status_code == 400


def test_a_federated_logout_ends_the_login_at_the_provider(login: SamlLogin) -> None:
    login.told(come_back(login, leave(login)))
    address = address_of_logout(Session.objects.of(login.tenant.pk).get(), return_to="https://app.example.test/bye") or ""
    query = dict(parse_qsl(urlsplit(address).query))
    assert address.startswith(ENDPOINT)
    assert (query["wa"], query["wreply"]) == ("wsignout1.0", "https://app.example.test/bye")


# Logouts that the provider starts.


@pytest.mark.parametrize("action", ["wsignoutcleanup1.0", "wsignout1.0"])
def test_the_provider_ends_the_login_in_this_browser(login: SamlLogin, action: str) -> None:
    login.told(come_back(login, leave(login)))
    answer = login.browser.get("/login/callback", {"wa": action}, headers={"Referer": "https://adfs.example.test/"})
    assert answer.status_code == 200
    assert not Session.objects.of(login.tenant.pk).exists()
    assert SignIn.objects.of(login.tenant.pk).filter(type="slo", is_success=True).exists()


@pytest.mark.parametrize("referer", ["", "https://evil.example.test/", "http://adfs.example.test/", "https://[::1"])
def test_another_site_cannot_end_a_login(login: SamlLogin, referer: str) -> None:
    login.told(come_back(login, leave(login)))
    headers = {"Referer": referer} if referer else {}
    assert login.browser.get("/login/callback", {"wa": "wsignoutcleanup1.0"}, headers=headers).status_code == 200
    assert Session.objects.of(login.tenant.pk).exists()


def test_a_cleanup_request_does_not_end_a_login_of_another_protocol(tenant: Tenant) -> None:
    other = saml_login(tenant)
    other.log_in()
    other.browser.get("/login/callback", {"wa": "wsignoutcleanup1.0"}, headers={"Referer": "https://idp.example.test/"})
    assert Session.objects.of(tenant.pk).exists()


def test_a_message_of_one_protocol_is_not_checked_with_the_options_of_another_protocol(tenant: Tenant, login: SamlLogin) -> None:
    sent = leave(login)
    response = login.come_back(login.answer(None), sent["wctx"])
    assert "code" not in login.told(response)
    assert "The answer is in SAML, but" in SignIn.objects.of(tenant.pk).filter(is_success=False).latest("created_at").description
    sent = leave(login)
    told = login.told(login.browser.get("/login/callback", {"code": "c", "state": sent["wctx"]}))
    assert "error" in told
    assert not User.objects.of(tenant.pk).exists()


def test_a_ws_federation_token_is_not_accepted_for_a_saml_login(tenant: Tenant) -> None:
    other = saml_login(tenant, tenant_domain="corp.example.test")
    _, state = other.leave()
    result = Token(realm=other.entity_id).result()
    assert "code" not in other.told(other.browser.post("/login/callback", {"wresult": result, "wctx": state}))
    assert "The answer is in WS-Federation, but" in SignIn.objects.of(tenant.pk).filter(is_success=False).latest("created_at").description
