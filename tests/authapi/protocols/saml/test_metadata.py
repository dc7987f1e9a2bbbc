"""Our metadata as service providers read it, and metadata of service providers as administrators paste it."""

from __future__ import annotations

import pytest

from authapi.protocols.saml.metadata import MetadataUnusable, ProviderFacts, provider_metadata, read_partner
from authapi.xml.bindings import HTTP_POST, HTTP_REDIRECT
from authapi.xml.certificates import base64_of, pem_of
from authapi.xml.names import DS, METADATA, SAML, qualified
from authapi.xml.parsing import child, children, local_name, parse
from tests.authapi.xml.signed_messages import trusted

MD = "urn:oasis:names:tc:SAML:2.0:metadata"
FACTS = ProviderFacts(
    entity_id="urn:acme.example.test",
    login_address="https://acme.example.test/samlp/abc",
    logout_address="https://acme.example.test/samlp/abc/logout",
    certificates=(trusted(), trusted("second")),
    attributes=("urn:mail",),
)


def key_of(name: str, use: str) -> str:
    data = f"<ds:X509Data><ds:X509Certificate>\n{base64_of(trusted(name))}\n</ds:X509Certificate></ds:X509Data>"
    return f'<md:KeyDescriptor{use}><ds:KeyInfo xmlns:ds="{DS}">{data}</ds:KeyInfo></md:KeyDescriptor>'


def partner(*parts: str, attributes: str = "", before: str = "", after: str = "") -> bytes:
    descriptor = f'<md:SPSSODescriptor protocolSupportEnumeration="x"{attributes}>{"".join(parts)}</md:SPSSODescriptor>'
    return f'{before}<md:EntityDescriptor xmlns:md="{MD}" entityID="urn:sp">{descriptor}</md:EntityDescriptor>{after}'.encode()


CONSUMER = f'<md:AssertionConsumerService Binding="{HTTP_POST}" Location=" https://sp.test/acs " index="2" isDefault="true"/>'


def test_our_metadata_contains_every_certificate_and_both_bindings() -> None:
    root = parse(provider_metadata(FACTS))
    assert root.get("entityID") == "urn:acme.example.test"
    descriptor = child(root, qualified(METADATA, "IDPSSODescriptor"))
    assert descriptor is not None
    assert descriptor.get("WantAuthnRequestsSigned") == "false"
    names = ["KeyDescriptor"] * 2 + ["SingleLogoutService"] * 2 + ["NameIDFormat"] * 4 + ["SingleSignOnService"] * 2 + ["Attribute"]
    assert [local_name(each) for each in descriptor] == names
    certificates = [each.text for each in root.iter(qualified(DS, "X509Certificate"))]
    assert certificates == [base64_of(trusted()), base64_of(trusted("second"))]
    logins = children(descriptor, qualified(METADATA, "SingleSignOnService"))
    assert {each.get("Binding"): each.get("Location") for each in logins} == dict.fromkeys((HTTP_REDIRECT, HTTP_POST), FACTS.login_address)
    assert [each.get("Name") for each in children(descriptor, qualified(SAML, "Attribute"))] == ["urn:mail"]


def test_the_metadata_of_a_service_provider_is_read() -> None:
    logout = f'<md:SingleLogoutService Binding="{HTTP_REDIRECT}" Location="https://sp.test/slo" ResponseLocation="https://sp.test/done"/>'
    raw = partner(
        key_of("first", ' use="signing"'),
        key_of("second", ""),
        logout,
        "<md:NameIDFormat>urn:f</md:NameIDFormat>",
        CONSUMER,
        '<md:AssertionConsumerService Binding="urn:artifact" Location="https://sp.test/art" index="3"/>',
        attributes=' AuthnRequestsSigned="true" WantAssertionsSigned="1"',
        before='<?xml version="1.0"?><!-- made by hand -->',
    )
    read = read_partner(raw)
    assert read.entity_id == "urn:sp"
    assert [(each.address, each.index, each.is_default) for each in read.consumers] == [("https://sp.test/acs", 2, True)]
    assert [(each.address, each.response_address) for each in read.logouts] == [("https://sp.test/slo", "https://sp.test/done")]
    assert read.signing == (pem_of(trusted()), pem_of(trusted("second")))
    assert read.encryption == (pem_of(trusted("second")),)
    assert (read.signs_requests, read.wants_signed_assertions, read.name_id_formats) == (True, True, ("urn:f",))


def test_the_only_service_provider_in_the_metadata_of_a_federation_is_used() -> None:
    whole = partner(CONSUMER, before=f'<md:EntitiesDescriptor xmlns:md="{MD}">', after="</md:EntitiesDescriptor>")
    assert read_partner(whole).entity_id == "urn:sp"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "cannot be read"),
        (b"<html/>", "type html"),
        (b"<!DOCTYPE a><a/>", "document type"),
        (provider_metadata(FACTS), "metadata of the application"),
        (partner(), "HTTP-POST"),
        (partner(CONSUMER.replace("HTTP-POST", "HTTP-Artifact")), "HTTP-POST"),
        (partner(CONSUMER, '<md:KeyDescriptor><X509Certificate xmlns="' + DS + '">xx</X509Certificate></md:KeyDescriptor>'), "certificate"),
        (f'<md:EntitiesDescriptor xmlns:md="{MD}"/>'.encode(), "describes 0"),
    ],
    ids=["empty", "html", "dtd", "ours", "no consumer", "artifact", "certificate", "nothing"],
)
def test_an_error_in_metadata_is_explained(raw: bytes, says: str) -> None:
    with pytest.raises(MetadataUnusable, match=says):
        read_partner(raw)
