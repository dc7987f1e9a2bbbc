"""Signatures that this service creates: their position and their contents."""

from __future__ import annotations

import pytest

from authapi.xml import algorithms
from authapi.xml.building import element, with_prefixes
from authapi.xml.failures import AlgorithmRefused
from authapi.xml.names import DS, EXC_C14N, SAML, qualified
from authapi.xml.parsing import local_name, parse, serialized
from authapi.xml.signing import signed
from authapi.xml.verifying import verified
from tests.authapi.xml.signed_messages import assertion, key, name_in, signed_assertion, trusted


@pytest.mark.parametrize(
    ("place", "names"),
    [(0, ["Signature", "Issuer", "Subject"]), (1, ["Issuer", "Signature", "Subject"]), (None, ["Issuer", "Subject", "Signature"])],
)
def test_the_signature_is_at_the_requested_position(place: int | None, names: list[str]) -> None:
    made = signed(assertion(), private_key=key(), certificate=trusted(), place=place)
    assert [local_name(each) for each in made] == names
    assert name_in(verified(parse(serialized(made)), [trusted()])) == "ada@example.test"


def test_canonicalization_is_exclusive_and_the_reference_names_the_id() -> None:
    signed_info = signed_assertion()[1][0]
    assert signed_info[0].get("Algorithm") == EXC_C14N
    assert signed_info[1].get("Algorithm") == algorithms.RSA_SHA256
    assert signed_info[2].get("URI") == "#_assertion"
    assert [each.get("Algorithm") for each in signed_info[2][0]] == [algorithms.ENVELOPED, EXC_C14N]


def test_the_signed_document_contains_no_placeholder() -> None:
    assert b"placeholder" not in serialized(signed_assertion())


def test_the_signature_includes_the_certificate() -> None:
    assert signed_assertion().find(f"{qualified(DS, 'Signature')}/{qualified(DS, 'KeyInfo')}/{qualified(DS, 'X509Data')}") is not None


@pytest.mark.parametrize(("signature", "digest"), [("x", algorithms.SHA256), (algorithms.RSA_SHA256, "x")])
def test_an_unknown_algorithm_is_refused(signature: str, digest: str) -> None:
    with pytest.raises(AlgorithmRefused):
        signed(assertion(), private_key=key(), certificate=trusted(), signature=signature, digest=digest)


def test_text_is_escaped_and_characters_that_xml_forbids_are_replaced() -> None:
    made = element(qualified(SAML, "NameID"), {"Format": 'a"<&\x00'}, "<b>&\x0b\ud800")
    again = parse(serialized(made))
    assert (again.get("Format"), again.text) == ('a"<&\ufffd', "<b>&\ufffd\ufffd")


def test_namespace_prefixes_in_values_are_declared() -> None:
    made = with_prefixes(element(qualified(SAML, "AttributeValue"), None, "x"), "xs", "xsi")
    assert b'xmlns:xs="http://www.w3.org/2001/XMLSchema"' in serialized(made)
