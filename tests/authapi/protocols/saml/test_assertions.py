"""Contents of a response: every setting of the add-on. The tests parse the response like a service provider."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from authapi.protocols.saml.assertions import Answering, Authenticated, failure, success
from authapi.protocols.saml.claims import NameIdUnavailable, attributes_of, name_id_of, pairwise_id
from authapi.protocols.saml.names import (
    BASIC_NAMES,
    EMAIL_ADDRESS,
    EMAIL_NAME,
    ENTITY_NAME,
    NAME_IDENTIFIER,
    NO_PASSIVE,
    PERSISTENT_NAME,
    RESPONDER,
    SUCCESS,
    TRANSIENT_NAME,
    UNSPECIFIED_CLASS,
    UNSPECIFIED_NAME,
    UNSPECIFIED_NAMES,
    UPN,
    URI_NAMES,
)
from authapi.protocols.saml.settings import settings_of
from authapi.xml.algorithms import DIGEST_NAMES, SIGNATURE_NAMES
from authapi.xml.certificates import pem_of
from authapi.xml.encryption import decrypted
from authapi.xml.failures import SignatureMissing
from authapi.xml.names import SAML, SAMLP, XSI, qualified
from authapi.xml.parsing import Element, child, local_name, parse, serialized
from authapi.xml.verifying import is_signed, verified
from tests.authapi.protocols.saml.requests_of_applications import SIGNER
from tests.authapi.xml.signed_messages import key, trusted

NOW = datetime(2026, 11, 23, 10, 0, 0, 123456, tzinfo=UTC)
PROFILE: dict[str, Any] = {
    "user_id": "database|ada",
    "email": "ada@example.test",
    "email_verified": True,
    "name": "Ada Lovelace",
    "given_name": "Ada",
    "family_name": "Lovelace",
    "nickname": "ada",
    "logins_count": 7,
    "app_metadata": {"department": "Engines", "cost_center": 4711, "flags": ["a", "b"]},
    "identities": [{"provider": "database", "connection": "people", "user_id": "ada", "isSocial": False}],
}
ANSWERING = Answering("urn:acme.example.test", "https://sp.test/acs", "_request", "_response", NOW)


def made(addon: dict[str, Any], profile: dict[str, Any] = PROFILE, *, asked_format: str = "", audience: str = "urn:sp") -> Element:
    settings = settings_of(addon)
    attributes = attributes_of(profile, settings)
    name_id = name_id_of(
        profile,
        attributes,
        settings,
        asked_format=asked_format,
        pairwise="pairwise",
        random="_random",
        issuer=ANSWERING.issuer,
        sp_qualifier="urn:sp",
    )
    login = Authenticated("_assertion", name_id, attributes, audience, "_index", NOW, settings.authn_context)
    return parse(serialized(success(ANSWERING, login, settings, SIGNER)))


def assertion_in(response: Element) -> Element:
    found = child(response, qualified(SAML, "Assertion"))
    assert found is not None
    return found


def at(element: Element, *names: str) -> Element:
    found = element.find("/".join(qualified(SAML, name) for name in names))
    assert found is not None, names
    return found


def shown(element: Element) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}


def attributes(response: Element) -> dict[str, list[str]]:
    statement = at(assertion_in(response), "AttributeStatement")
    return {each.get("Name") or "": [value.text or "" for value in each] for each in statement}


def test_a_response_has_its_default_contents() -> None:
    response = made({})
    assert shown(response) == {
        "ID": "_response",
        "InResponseTo": "_request",
        "Version": "2.0",
        "IssueInstant": "2026-11-23T10:00:00.123Z",
        "Destination": "https://sp.test/acs",
    }
    assert [local_name(each) for each in response] == ["Issuer", "Status", "Assertion"]
    assert response[1][0].get("Value") == SUCCESS
    assertion = verified(assertion_in(response), [trusted()])
    assert [local_name(each) for each in assertion] == ["Issuer", "Subject", "Conditions", "AuthnStatement", "AttributeStatement"]
    assert at(assertion, "Issuer").text == "urn:acme.example.test"
    confirmation = at(assertion, "Subject", "SubjectConfirmation", "SubjectConfirmationData")
    assert shown(confirmation) == {
        "NotOnOrAfter": "2026-11-23T11:00:00.123Z",
        "Recipient": "https://sp.test/acs",
        "InResponseTo": "_request",
    }
    conditions = at(assertion, "Conditions")
    assert (conditions.get("NotBefore"), conditions.get("NotOnOrAfter")) == ("2026-11-23T10:00:00.123Z", "2026-11-23T11:00:00.123Z")
    assert at(conditions, "AudienceRestriction", "Audience").text == "urn:sp"
    statement = at(assertion, "AuthnStatement")
    assert (statement.get("AuthnInstant"), statement.get("SessionIndex")) == ("2026-11-23T10:00:00.123Z", "_index")
    assert at(statement, "AuthnContext", "AuthnContextClassRef").text == UNSPECIFIED_CLASS


def test_the_signature_follows_the_issuer_element() -> None:
    assert local_name(assertion_in(made({}))[1]) == "Signature"
    assert local_name(made({"signResponse": True})[1]) == "Signature"


def test_only_the_response_is_signed_if_the_settings_require_it() -> None:
    response = made({"signResponse": True})
    assert not is_signed(assertion_in(response))
    assert verified(response, [trusted()]).get("ID") == "_response"
    with pytest.raises(SignatureMissing):
        verified(assertion_in(response), [trusted()])


def test_the_response_and_the_assertion_are_signed_if_the_settings_require_it() -> None:
    outer = verified(made({"signResponse": True, "signAssertion": True}), [trusted()])
    assert verified(assertion_in(outer), [trusted()]).get("ID") == "_assertion"


@pytest.mark.parametrize(("signature", "digest", "allow_sha1"), [("rsa-sha1", "sha1", True), ("rsa-sha512", "sha512", False)])
def test_the_settings_determine_the_algorithms(signature: str, digest: str, allow_sha1: bool) -> None:

    signer = replace(SIGNER, signature=SIGNATURE_NAMES[signature], digest=DIGEST_NAMES[digest])
    response = parse(serialized(failure(ANSWERING, (RESPONDER,), "x", signer)))
    assert verified(response, [trusted()], allow_sha1=allow_sha1).get("ID") == "_response"


def test_an_encrypted_assertion_can_be_decrypted_with_the_key_of_the_application() -> None:
    response = made({"encryptionCert": pem_of(trusted("second"))})
    holder = child(response, qualified(SAML, "EncryptedAssertion"))
    assert holder is not None
    assert b"ada@example.test" not in serialized(response)
    assert verified(decrypted(holder, [key("second")]), [trusted()]).get("ID") == "_assertion"


def test_the_settings_determine_audience_recipient_destination_and_lifetime() -> None:
    response = made({"audience": "urn:a", "recipient": "https://r.test", "destination": "https://d.test", "lifetimeInSeconds": 60})
    assertion = assertion_in(response)
    assert at(assertion, "Conditions", "AudienceRestriction", "Audience").text == "urn:a"
    data = at(assertion, "Subject", "SubjectConfirmation", "SubjectConfirmationData")
    assert (data.get("Recipient"), data.get("NotOnOrAfter")) == ("https://r.test", "2026-11-23T10:01:00.123Z")
    assert response.get("Destination") == "https://d.test"


def test_an_unrequested_response_contains_no_request_id() -> None:

    settings = settings_of({})
    attributes_now = attributes_of(PROFILE, settings)
    name_id = name_id_of(PROFILE, attributes_now, settings, asked_format="", pairwise="", random="", issuer="")
    login = Authenticated("_assertion", name_id, attributes_now, "", "_index", NOW, UNSPECIFIED_CLASS)
    response = success(replace(ANSWERING, in_response_to=""), login, settings, SIGNER)
    assert b"InResponseTo" not in serialized(response)
    assert b"AudienceRestriction" not in serialized(response)


def test_the_default_attributes_are_sent() -> None:
    found = attributes(made({}))
    claims = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims"
    assert found == {
        f"{claims}/nameidentifier": ["database|ada"],
        f"{claims}/emailaddress": ["ada@example.test"],
        f"{claims}/name": ["Ada Lovelace"],
        f"{claims}/givenname": ["Ada"],
        f"{claims}/surname": ["Lovelace"],
        UPN: ["ada@example.test"],
        "urn:svc:claims:email_verified": ["true"],
        "urn:svc:claims:nickname": ["ada"],
        "urn:svc:claims:identities/default/provider": ["database"],
        "urn:svc:claims:identities/default/connection": ["people"],
        "urn:svc:claims:identities/default/isSocial": ["false"],
    }


def test_only_mapped_attributes_are_sent_if_unmapped_attributes_are_switched_off() -> None:
    addon = {"passthroughClaimsWithNoMapping": False, "mapIdentities": False, "createUpnClaim": False}
    assert attributes(made({**addon, "mappings": {"email": "mail"}})) == {"mail": ["ada@example.test"]}
    assert attributes(made({**addon, "mappings": {"email": ["mail", "login"]}})) == {
        "mail": ["ada@example.test"],
        "login": ["ada@example.test"],
    }


def test_a_response_without_attributes_has_no_attribute_statement() -> None:
    addon = {"passthroughClaimsWithNoMapping": False, "mapIdentities": False, "createUpnClaim": False, "mappings": {}}
    assert assertion_in(made(addon)).find(qualified(SAML, "AttributeStatement")) is None


def test_unmapped_claims_keep_their_names_if_the_settings_require_it() -> None:
    found = attributes(made({"mapUnknownClaimsAsIs": True}))
    assert found["nickname"] == ["ada"]
    assert attributes(made({"claimsPrefix": "http://schemas.example.test/"}))["http://schemas.example.test/nickname"] == ["ada"]


def test_members_of_metadata_are_sent_only_if_they_are_mapped() -> None:
    found = attributes(made({"mappings": {"app_metadata.department": "dep", "app_metadata.flags": "flags", "app_metadata.absent": "none"}}))
    assert (found["dep"], found["flags"]) == (["Engines"], ["a", "b"])
    assert "none" not in found
    assert not [name for name in attributes(made({})) if "metadata" in name or "logins_count" in name]


def test_attribute_values_have_types_and_attribute_names_have_formats() -> None:
    addon = {"mappings": {"email": "mail", "email_verified": "urn:x:verified", "app_metadata.cost_center": "cost center"}}
    statement = at(assertion_in(made(addon)), "AttributeStatement")
    kinds = {each.get("Name"): (each.get("NameFormat"), each[0].get(qualified(XSI, "type"))) for each in statement}
    assert kinds["mail"] == (BASIC_NAMES, "xs:string")
    assert kinds["urn:x:verified"] == (URI_NAMES, "xs:boolean")
    assert kinds["cost center"] == (UNSPECIFIED_NAMES, "xs:double")


def test_types_and_formats_can_be_omitted() -> None:
    statement = at(assertion_in(made({"typedAttributes": False, "includeAttributeNameFormat": False})), "AttributeStatement")
    assert {each.get("NameFormat") for each in statement} == {None}
    assert {value.get(qualified(XSI, "type")) for each in statement for value in each} == {"xs:anyType"}


def name_id(addon: dict[str, Any], profile: dict[str, Any] = PROFILE, asked_format: str = "") -> tuple[str, str]:
    found = at(assertion_in(made(addon, profile, asked_format=asked_format)), "Subject", "NameID")
    return found.text or "", found.get("Format") or ""


def test_the_name_id_is_the_first_probe_for_which_the_user_has_a_value() -> None:
    assert name_id({}) == ("database|ada", UNSPECIFIED_NAME)
    assert name_id({"nameIdentifierProbes": [EMAIL_ADDRESS, NAME_IDENTIFIER]}) == ("ada@example.test", UNSPECIFIED_NAME)
    assert name_id({"nameIdentifierProbes": [EMAIL_ADDRESS, NAME_IDENTIFIER]}, {"user_id": "x"}) == ("x", UNSPECIFIED_NAME)
    assert name_id({"nameIdentifierProbes": ["urn:none"]}) == ("database|ada", UNSPECIFIED_NAME)
    assert name_id({"nameIdentifierProbes": ["dep"], "mappings": {"app_metadata.department": "dep"}}) == ("Engines", UNSPECIFIED_NAME)


def test_the_name_id_uses_the_format_of_the_settings() -> None:
    assert name_id({"nameIdentifierFormat": EMAIL_NAME, "nameIdentifierProbes": [EMAIL_ADDRESS]}) == ("ada@example.test", EMAIL_NAME)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (EMAIL_NAME, ("ada@example.test", EMAIL_NAME)),
        ("urn:oasis:names:tc:SAML:2.0:nameid-format:emailAddress", ("ada@example.test", EMAIL_NAME)),
        (PERSISTENT_NAME, ("pairwise", PERSISTENT_NAME)),
        (TRANSIENT_NAME, ("_random", TRANSIENT_NAME)),
        (UNSPECIFIED_NAME, ("database|ada", UNSPECIFIED_NAME)),
    ],
)
def test_the_request_selects_the_name_id_format(asked: str, expected: tuple[str, str]) -> None:
    assert name_id({}, asked_format=asked) == expected


@pytest.mark.parametrize(("asked", "profile"), [(ENTITY_NAME, PROFILE), ("urn:x", PROFILE), (EMAIL_NAME, {"user_id": "x"})])
def test_a_name_id_format_for_which_the_user_has_no_value_is_refused(asked: str, profile: dict[str, Any]) -> None:
    with pytest.raises(NameIdUnavailable):
        name_id({}, profile, asked)


def test_a_persistent_name_id_has_its_qualifiers() -> None:
    found = at(assertion_in(made({}, asked_format=PERSISTENT_NAME)), "Subject", "NameID")
    assert (found.get("NameQualifier"), found.get("SPNameQualifier")) == ("urn:acme.example.test", "urn:sp")


def test_two_applications_get_different_name_ids_of_one_user() -> None:
    ids = {pairwise_id(tenant_id="t", client_id=client, user_id="database|ada") for client in ("a", "b")}
    assert len(ids) == 2
    assert pairwise_id(tenant_id="t", client_id="a", user_id="database|ada") in ids


def test_a_signed_error_response_contains_two_status_codes_and_the_reason() -> None:
    response = verified(parse(serialized(failure(ANSWERING, (RESPONDER, NO_PASSIVE), "Login required", SIGNER))), [trusted()])
    status = child(response, qualified(SAMLP, "Status"))
    assert status is not None
    assert (status[0].get("Value"), status[0][0].get("Value"), status[1].text) == (RESPONDER, NO_PASSIVE, "Login required")
    assert child(response, qualified(SAML, "Assertion")) is None


def test_hostile_values_are_escaped() -> None:
    profile = {**PROFILE, "name": '</saml:AttributeValue><evil a="', "nickname": "a\x00b"}
    found = attributes(made({}, profile))
    assert found["http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name"] == ['</saml:AttributeValue><evil a="']
    assert found["urn:svc:claims:nickname"] == ["a\ufffdb"]
