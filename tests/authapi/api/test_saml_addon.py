"""The add-on `samlp` in the management interface: its settings are stored, checked and switched off."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.models import Client
from authapi.protocols.saml.settings import DEFAULT_PROBES, is_on, saml_settings
from authapi.xml.bindings import HTTP_REDIRECT
from tests.authapi.assertions import public_pem
from tests.authapi.certificates import certificate
from tests.management import Management

EVERYTHING: dict[str, Any] = {
    "audience": "urn:sp",
    "recipient": "https://sp.example.test/acs",
    "destination": "https://sp.example.test/acs",
    "issuer": "urn:us",
    "mappings": {"email": "mail", "name": ["cn", "displayName"]},
    "createUpnClaim": False,
    "passthroughClaimsWithNoMapping": False,
    "mapUnknownClaimsAsIs": True,
    "mapIdentities": False,
    "claimsPrefix": "http://schemas.example.test/",
    "signatureAlgorithm": "rsa-sha1",
    "digestAlgorithm": "sha1",
    "signResponse": True,
    "signAssertion": True,
    "lifetimeInSeconds": 600,
    "nameIdentifierFormat": "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
    "nameIdentifierProbes": ["http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"],
    "authnContextClassRef": "urn:oasis:names:tc:SAML:2.0:ac:classes:Password",
    "typedAttributes": False,
    "includeAttributeNameFormat": False,
    "logout": {"callback": "https://sp.example.test/slo", "slo_enabled": False},
    "binding": HTTP_REDIRECT,
    "signingCert": certificate("first") + certificate("second"),
    "encryptionCert": certificate("first"),
    "encryptionAlgorithm": "aes128-cbc",
    "assertionConsumerServices": [{"index": 0, "url": "https://sp.example.test/acs"}],
}
MALFORMED: list[dict[str, Any]] = [
    {"toaster": True},
    {"audience": 1},
    {"recipient": "has space"},
    {"mappings": {"email": 1}},
    {"mappings": {"email": []}},
    {"mappings": {f"m{place}": "x" for place in range(101)}},
    {"signatureAlgorithm": "rsa-md5"},
    {"digestAlgorithm": "md5"},
    {"lifetimeInSeconds": 0},
    {"lifetimeInSeconds": 2_592_001},
    {"nameIdentifierProbes": "x"},
    {"logout": {"callback": "javascript:alert(1)"}},
    {"logout": {"callback": "https://user@evil.example"}},
    {"logout": {"other": 1}},
    {"binding": "urn:oasis:names:tc:SAML:2.0:bindings:SOAP"},
    {"signingCert": "no certificate"},
    {"signingCert": public_pem()},
    {"signingCert": "-----BEGIN PRIVATE KEY-----"},
    {"encryptionCert": certificate("first") + certificate("second")},
    {"encryptionAlgorithm": "tripledes-cbc"},
    {"signAssertion": False},
    {"assertionConsumerServices": [{"index": 0, "url": "/acs"}]},
    {"assertionConsumerServices": [{"index": 1, "url": "https://a.test/"}, {"index": 1, "url": "https://b.test/"}]},
]


def made(api: Management, **members: Any) -> str:
    answer = api.post("clients", {"name": "Payroll", **members})
    assert answer.status == 201, answer.json
    return str(answer.json["client_id"])


def client(client_id: str) -> Client:
    return Client.all_tenants.get(client_id=client_id)


def test_every_setting_is_stored_returned_and_applied(api: Management) -> None:
    client_id = made(api, addons={"samlp": EVERYTHING})
    assert api.get(f"clients/{client_id}").json["addons"] == {"samlp": EVERYTHING}
    settings = saml_settings(client(client_id).settings)
    assert settings.mappings == {"email": ("mail",), "name": ("cn", "displayName")}
    assert (settings.allows_sha1, settings.signs_response, settings.signs_assertion) == (True, True, True)
    assert (settings.sends_logouts, settings.logout_binding, settings.lifetime_seconds) == (False, HTTP_REDIRECT, 600)
    assert (len(settings.signing_certificates), settings.encryption_certificate is None) == (2, False)
    assert settings.address_at(0) == "https://sp.example.test/acs"


def test_the_add_on_can_be_switched_on_without_any_setting(api: Management) -> None:
    client_id = made(api, addons={"samlp": {}})
    assert api.get(f"clients/{client_id}").json["addons"] == {"samlp": {}}
    settings = saml_settings(client(client_id).settings)
    assert is_on(client(client_id).settings)
    assert (settings.signature, settings.digest, settings.allows_sha1) == ("rsa-sha256", "sha256", False)
    assert (settings.signs_assertion, settings.signs_response, settings.requires_signed_requests) == (True, False, False)
    assert (settings.lifetime_seconds, settings.name_id_probes) == (3600, DEFAULT_PROBES)


def test_null_restores_the_default_of_a_setting(api: Management) -> None:
    client_id = made(api, addons={"samlp": dict.fromkeys(EVERYTHING)})
    assert saml_settings(client(client_id).settings) == saml_settings({"addons": {"samlp": {}}})


def test_null_switches_the_add_on_off(api: Management) -> None:
    client_id = made(api, addons={"samlp": {}})
    answer = api.patch(f"clients/{client_id}", {"addons": {"samlp": None}})
    assert (answer.status, answer.json["addons"]) == (200, {})
    assert not is_on(client(client_id).settings)


@pytest.mark.parametrize("addon", MALFORMED, ids=lambda addon: str(addon)[:60])
def test_a_setting_of_the_wrong_type_is_refused(api: Management, addon: dict[str, Any]) -> None:
    answer = api.post("clients", {"name": "Payroll", "addons": {"samlp": addon}})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), answer.json


def test_other_add_ons_are_refused(api: Management) -> None:
    answer = api.post("clients", {"name": "Payroll", "addons": {"samlp": {}, "aws": {}}})
    assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")
