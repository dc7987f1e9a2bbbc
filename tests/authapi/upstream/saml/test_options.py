"""Options of SAML connections and their certificates: refused values, and the use of accepted values in a login."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.certificates import MOST_CERTIFICATES, CertificateUnreadable, read_certificates
from authapi.upstream.saml.metadata import read_metadata
from authapi.upstream.saml.options import POST, REDIRECT, ClientProtocol, OptionsInvalid, SamlOptions, read_options
from authapi.upstream.saml.provider import Endpoint, own_entity_id, provider_of
from tests.factories.saml_provider import ENTITY_ID, OTHER, SIGN_IN, SIGN_OUT, SIGNING, key_pair, metadata

PEM = SIGNING.certificate.public_bytes(Encoding.PEM).decode()
OTHER_PEM = OTHER.certificate.public_bytes(Encoding.PEM).decode()


def problem(options: dict[str, Any]) -> str:
    with pytest.raises(OptionsInvalid) as refused:
        read_options(options)
    return str(refused.value)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"signInEndpoint": "http://idp.example.test"}, "signInEndpoint"),
        ({"signInEndpoint": "javascript:alert(1)"}, "signInEndpoint"),
        ({"signInEndpoint": "https://user@idp.example.test"}, "signInEndpoint"),
        ({"signInEndpoint": "https://[::1"}, "signInEndpoint"),
        ({"signInEndpoint": 5}, "signInEndpoint"),
        ({"signOutEndpoint": "https://idp.example.test/#x"}, "signOutEndpoint"),
        ({"metadataUrl": "ftp://idp.example.test"}, "metadataUrl"),
        ({"metadataXml": "x" * 600_000}, "metadataXml"),
        ({"protocolBinding": "SOAP"}, "protocolBinding"),
        ({"signatureAlgorithm": "hmac-sha256"}, "signatureAlgorithm"),
        ({"digestAlgorithm": ["sha256"]}, "digestAlgorithm"),
        ({"signSAMLRequest": "yes"}, "signSAMLRequest"),
        ({"disableSignout": 1}, "disableSignout"),
        ({"signingCert": "no certificate"}, "signingCert"),
        ({"cert": [PEM, 5]}, "cert"),
        ({"entityId": ["a"]}, "entityId"),
        ({"user_id_attribute": {"a": 1}}, "user_id_attribute"),
        ({"fieldsMap": ["email"]}, "fieldsMap"),
        ({"fieldsMap": {"email": [5]}}, "fieldsMap.email"),
        ({"idpinitiated": True}, "idpinitiated"),
        ({"idpinitiated": {"enabled": "yes"}}, "idpinitiated"),
        ({"idpinitiated": {"enabled": True}}, "idpinitiated.client_id"),
        ({"idpinitiated": {"enabled": True, "client_id": "c", "client_protocol": "gopher"}}, "idpinitiated.client_protocol"),
        ({"idpinitiated": {"enabled": True, "client_id": "c", "client_authorizequery": {}}}, "idpinitiated"),
    ],
)
def test_the_refusal_names_an_unusable_option(options: dict[str, Any], named: str) -> None:
    assert problem(options).startswith(named)


def test_missing_options_are_not_an_error() -> None:
    assert read_options({}) == SamlOptions()
    assert read_options({"signInEndpoint": None, "signingCert": "", "unknown": object()}) == SamlOptions()


def test_plain_http_is_accepted_if_the_service_allows_it() -> None:
    assert read_options({"signInEndpoint": "http://127.0.0.1:80/sso"}, allows_http=True).sign_in_endpoint == "http://127.0.0.1:80/sso"


def test_option_names_of_client_libraries_are_accepted() -> None:
    options = read_options(
        {
            "signInEndpoint": SIGN_IN,
            "signOutEndpoint": SIGN_OUT,
            "signingCert": base64.b64encode(PEM.encode()).decode(),
            "cert": OTHER.text,
            "protocolBinding": POST,
            "signSAMLRequest": True,
            "signatureAlgorithm": "rsa-sha1",
            "digestAlgorithm": "sha1",
            "user_id_attribute": "upn",
            "fieldsMap": {"email": "mail", "given_name": ["gn", "givenName"], "department": "dept"},
            "destinationUrl": "https://proxy.example.test/acs",
            "recipientUrl": "https://proxy.example.test/acs",
            "should_trust_email_verified_connection": "always_set_emails_as_verified",
            "idpinitiated": {"enabled": True, "client_id": "c", "client_protocol": "oidc", "client_authorizequery": "?scope=openid"},
        }
    )
    assert options.certificates == (SIGNING.known, OTHER.known)
    assert (options.binding, options.signs_requests, options.signature_algorithm, options.digest_algorithm) == (
        POST,
        True,
        "rsa-sha1",
        "sha1",
    )
    assert options.user_id_attributes == ("upn",)
    assert dict(options.fields) == {"email": ("mail",), "given_name": ("gn", "givenName")}
    assert options.recipients == ("https://proxy.example.test/acs",)
    assert options.trusts_emails is True
    assert options.idp_initiated is not None
    assert (options.idp_initiated.protocol, options.idp_initiated.query) == (ClientProtocol.OAUTH2, "scope=openid")


def test_logins_that_the_provider_starts_are_off_by_default() -> None:
    assert read_options({"idpinitiated": {"client_id": "c"}}).idp_initiated is None
    assert read_options({"idpinitiated": {"enabled": False, "client_id": "c"}}).idp_initiated is None


# Certificates.


@pytest.mark.parametrize(
    "pasted",
    [
        PEM,
        f"Bag Attributes\n  friendlyName: idp\n{PEM}",
        PEM.replace("\n", "\r\n"),
        SIGNING.text,
        "\n".join(SIGNING.text[at : at + 60] for at in range(0, len(SIGNING.text), 60)),
        base64.b64encode(PEM.encode()).decode(),
        [PEM],
        [PEM, SIGNING.text],
    ],
    # Ids made from the certificates would differ between the test processes, because each process generates new keys.
    ids=range(8),
)
def test_a_certificate_is_read_in_every_format_in_which_administrators_paste_it(pasted: Any) -> None:
    assert read_certificates(pasted) == (SIGNING.known,)


def test_a_text_can_contain_several_certificates() -> None:
    assert read_certificates(PEM + OTHER_PEM) == (SIGNING.known, OTHER.known)


@pytest.mark.parametrize(
    "pasted",
    ["", "   ", "A" * 70_000, "MIIB", PEM.replace("MII", "AAA"), {"cert": PEM}, None, base64.b64encode(b"x").decode()],
    ids=range(8),
)
def test_an_invalid_certificate_is_refused(pasted: Any) -> None:
    with pytest.raises(CertificateUnreadable):
        read_certificates(pasted)


def test_a_certificate_with_a_short_key_is_refused_and_the_error_contains_its_length() -> None:
    with pytest.raises(CertificateUnreadable, match="1024"):
        read_certificates(key_pair(bits=1024).text)


def test_the_number_of_certificates_is_limited() -> None:
    one = key_pair()
    many = [key_pair(f"idp-{number}.example.test").text for number in range(2)] * MOST_CERTIFICATES
    assert len(read_certificates(many)) == 2
    assert one.known not in read_certificates(many)


def test_the_expiry_of_a_certificate_is_recognized() -> None:
    now = datetime.now(UTC)
    old = key_pair(days=-1).known
    assert old.is_expired(now)
    assert not SIGNING.known.is_expired(now)
    assert SIGNING.known.expires_within(timedelta(days=400), now)
    assert not SIGNING.known.expires_within(timedelta(days=30), now)


# How a login uses the options.


def test_options_have_precedence_over_metadata_and_metadata_fills_in_missing_values() -> None:
    published = read_metadata(metadata(OTHER.text, role={"WantAuthnRequestsSigned": "true"}))
    found = provider_of(read_options({"metadataUrl": "https://idp.example.test/m"}), published, tenant_id="acme", connection="corp")
    assert (found.entity_id, found.own_entity_id) == (ENTITY_ID, "urn:auth0:acme:corp")
    assert (found.sign_in, found.sign_out) == (Endpoint(SIGN_IN, REDIRECT), Endpoint(SIGN_OUT, REDIRECT))
    assert found.certificates == (OTHER.known,)
    assert found.signs_requests
    own = {"signInEndpoint": "https://idp.example.test/own", "signingCert": PEM, "signSAMLRequest": False, "disableSignout": True}
    mine = provider_of(read_options(own), published, tenant_id="acme", connection="corp")
    assert (mine.sign_in.address, mine.sign_out, mine.certificates, mine.signs_requests) == (
        "https://idp.example.test/own",
        None,
        (SIGNING.known,),
        False,
    )


def test_the_connection_can_set_the_entity_id() -> None:
    assert own_entity_id("acme", "corp", read_options({"entityId": "https://us.example.test"})) == "https://us.example.test"


@pytest.mark.parametrize("options", [{}, {"signInEndpoint": SIGN_IN}, {"signingCert": PEM}])
def test_the_error_for_an_incomplete_connection_says_what_is_missing(options: dict[str, Any]) -> None:
    with pytest.raises(UpstreamFailed) as refused:
        provider_of(read_options(options), None, tenant_id="acme", connection="corp")
    assert refused.value.case is LoginCase.UPSTREAM_MISCONFIGURED
    assert "corp has no" in refused.value.detail


def test_the_endpoint_of_ping_federate_is_below_its_base_url() -> None:
    options = read_options({"signingCert": PEM})
    found = provider_of(options, None, tenant_id="acme", connection="corp", base_address="https://ping.example.test/")
    assert found.sign_in.address == "https://ping.example.test/idp/SSO.saml2"
