"""Metadata of providers, and our own metadata for providers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from authapi.upstream.saml.metadata import MetadataUnreadable, ProviderMetadata, next_fetch, read_metadata
from authapi.upstream.saml.own_metadata import own_metadata
from authapi.xml.names import DS, METADATA, qualified
from authapi.xml.parsing import parse
from tests.factories.saml_provider import ENTITY_ID, OTHER, POST, REDIRECT, SIGN_IN, SIGN_OUT, SIGNING, key_pair, metadata

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def told(raw: bytes) -> str:
    with pytest.raises(MetadataUnreadable) as refused:
        read_metadata(raw)
    return str(refused.value)


def test_metadata_of_a_provider_is_read_with_its_urls_and_certificates() -> None:
    found = read_metadata(metadata(SIGNING.text, OTHER.text, role={"WantAuthnRequestsSigned": "1"}))
    assert (found.entity_id, found.sign_in, found.sign_out) == (ENTITY_ID, {REDIRECT: SIGN_IN}, {REDIRECT: SIGN_OUT})
    assert found.certificates == (SIGNING.known, OTHER.known)
    assert found.wants_signed_requests


def test_stored_metadata_is_read_back_unchanged() -> None:
    found = read_metadata(metadata(attributes={"validUntil": "2026-04-01T00:00:00Z", "cacheDuration": "PT6H"}))
    assert found.cache_seconds == 6 * 3600
    kept = ProviderMetadata.of_kept(found.kept())
    assert (kept.entity_id, kept.certificates, kept.valid_until) == (found.entity_id, found.certificates, datetime(2026, 4, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"<html/>", "begins with html"),
        (b"not xml", "cannot be read"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "document type"),
        (b"<EntityDescriptor xmlns='urn:oasis:names:tc:SAML:2.0:metadata' entityID='x'/>", "has no identity provider"),
        (metadata(entity_id=""), "no entityID"),
        (metadata(sign_in={}), "SingleSignOnService"),
        (metadata(sign_in={REDIRECT: "javascript:alert(1)"}), "SingleSignOnService"),
        (metadata(sign_in={"urn:oasis:names:tc:SAML:2.0:bindings:SOAP": SIGN_IN}), "SingleSignOnService"),
        (metadata("AAAA"), "no usable certificate"),
        (metadata(key_pair(bits=1024).text), "no usable certificate"),
    ],
    ids=[
        "html",
        "plain text",
        "document type",
        "no role",
        "no id",
        "no address",
        "script address",
        "unsupported binding",
        "no certificate",
        "short key",
    ],
)
def test_the_error_for_an_unusable_document_explains_why(raw: bytes, words: str) -> None:
    assert words in told(raw)


def test_a_document_with_several_providers_is_refused() -> None:
    two = metadata() + metadata(entity_id="https://another.example.test")
    wrapped = b"<EntitiesDescriptor xmlns='urn:oasis:names:tc:SAML:2.0:metadata'>" + two + b"</EntitiesDescriptor>"
    assert "several identity providers" in told(wrapped)
    one = b"<EntitiesDescriptor xmlns='urn:oasis:names:tc:SAML:2.0:metadata'>" + metadata() + b"</EntitiesDescriptor>"
    assert read_metadata(one).entity_id == ENTITY_ID


def test_an_invalid_certificate_besides_a_valid_certificate_is_ignored() -> None:
    assert read_metadata(metadata("AAAA", SIGNING.text)).certificates == (SIGNING.known,)


@pytest.mark.parametrize(
    ("attributes", "waits"),
    [
        ({}, DAY),
        ({"cacheDuration": "PT6H"}, 6 * HOUR),
        ({"cacheDuration": "PT1S"}, HOUR),
        ({"cacheDuration": "P30D"}, DAY),
        ({"cacheDuration": "P1Y"}, DAY),
        ({"cacheDuration": "nonsense"}, DAY),
        ({"validUntil": "2026-03-01T08:00:00Z"}, 4 * HOUR),
        ({"validUntil": "2020-03-01T08:00:00Z"}, HOUR),
        ({"validUntil": "nonsense"}, DAY),
    ],
)
def test_a_document_sets_its_own_refresh_interval_within_bounds(attributes: dict[str, str], waits: timedelta) -> None:
    found = read_metadata(metadata(attributes=attributes))
    assert next_fetch(found, NOW, shortest=HOUR, longest=DAY) - NOW == waits


def test_our_own_document_contains_our_urls_and_every_certificate() -> None:
    raw = own_metadata(
        entity_id="urn:auth0:acme:corp",
        acs="https://acme.example.test/login/callback?connection=corp",
        logout="https://acme.example.test/logout?connection=corp",
        signing=[SIGNING.certificate, OTHER.certificate],
        encryption=[SIGNING.certificate],
        signs_requests=True,
    )
    root = parse(raw)
    (role,) = root
    assert root.get("entityID") == "urn:auth0:acme:corp"
    assert role.get("AuthnRequestsSigned") == "true"
    keys = [
        (key.get("use"), key.findtext(f".//{qualified(DS, 'X509Certificate')}"))
        for key in role.iterchildren(qualified(METADATA, "KeyDescriptor"))
    ]
    assert keys == [("signing", SIGNING.text), ("signing", OTHER.text), ("encryption", SIGNING.text)]
    acs = role.find(qualified(METADATA, "AssertionConsumerService"))
    assert acs is not None
    assert (acs.get("Binding"), acs.get("Location")) == (POST, "https://acme.example.test/login/callback?connection=corp")
