"""Signatures: accepted signatures, and refused signatures that resemble valid signatures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from authapi.xml import algorithms
from authapi.xml.building import element
from authapi.xml.certificates import base64_of
from authapi.xml.failures import AlgorithmRefused, SignatureInvalid, SignatureMissing, SignatureRefused, XmlError
from authapi.xml.names import DS, EXC_C14N, SAML, qualified
from authapi.xml.parsing import Element, parse, serialized
from authapi.xml.signing import sign_octets, signed
from authapi.xml.verifying import is_signed, verified, verify_octets
from tests.authapi.xml.signed_messages import (
    NAME_ID,
    SUBJECT,
    assertion,
    at,
    changed,
    inner_assertion,
    key,
    name_in,
    response,
    signed_assertion,
    signed_response,
    trusted,
)

ENVELOPED = f'<ds:Transform Algorithm="{algorithms.ENVELOPED}"/>'.encode()


def judged(root: Element, **options: Any) -> Element:
    return verified(inner_assertion(root), [trusted()], **options)


def test_a_signed_assertion_is_returned_as_it_was_signed() -> None:
    root = parse(signed_response())
    found = judged(root)
    assert name_in(found) == "ada@example.test"
    assert found is not inner_assertion(root)
    assert not is_signed(found)


def test_a_response_and_its_assertion_may_both_be_signed() -> None:
    both = signed(response(signed_assertion()), private_key=key(), certificate=trusted(), place=1)
    outer = verified(parse(serialized(both)), [trusted()])
    assert name_in(verified(inner_assertion(outer), [trusted()])) == "ada@example.test"


def test_the_second_of_several_certificates_is_accepted_during_a_rollover() -> None:
    assert name_in(verified(inner_assertion(parse(signed_response())), [trusted("second"), trusted()])) == "ada@example.test"


def test_a_namespace_declaration_added_after_signing_does_not_break_the_signature() -> None:
    raw = serialized(signed_assertion()).replace(b"<saml:Assertion ", b'<saml:Assertion xmlns:xs="http://www.w3.org/2001/XMLSchema" ', 1)
    assert name_in(judged(response(parse(raw)))) == "ada@example.test"


@pytest.mark.parametrize("id_attribute", ["ID", "AssertionID"])
def test_the_id_attribute_can_have_its_saml_1_1_name(id_attribute: str) -> None:
    made = signed(
        element("{urn:x}Token", {id_attribute: "_t"}, "text"), private_key=key(), certificate=trusted(), id_attribute=id_attribute
    )
    assert verified(made, [trusted()], id_attribute=id_attribute).text == "text"


def test_an_unsigned_assertion_is_refused() -> None:
    with pytest.raises(SignatureMissing):
        judged(response(assertion()))


def test_an_assertion_whose_signature_was_removed_is_refused() -> None:
    root = parse(signed_response())
    inside = inner_assertion(root)
    inside.remove(inside[1])
    with pytest.raises(SignatureMissing):
        judged(root)


def test_an_empty_signature_is_refused() -> None:
    root = parse(signed_response())
    inner_assertion(root)[1].clear()
    with pytest.raises(SignatureRefused):
        judged(root)


@pytest.mark.parametrize("part", ["SignedInfo", "SignatureValue"])
def test_a_signature_without_one_of_its_parts_is_refused(part: str) -> None:
    root = parse(signed_response())
    signature = inner_assertion(root)[1]
    signature.remove(at(signature, qualified(DS, part)))
    with pytest.raises(SignatureRefused):
        judged(root)


def test_a_changed_value_is_refused() -> None:
    with pytest.raises(SignatureInvalid):
        judged(changed(signed_response(), b"ada@", b"eve@"))


def test_a_signature_of_another_key_is_refused() -> None:
    with pytest.raises(SignatureInvalid):
        judged(response(signed_assertion("second")))


def test_every_signature_is_refused_if_there_are_no_certificates() -> None:
    with pytest.raises(SignatureInvalid):
        verified(inner_assertion(parse(signed_response())), [])


def test_an_untrusted_certificate_in_key_info_is_not_used() -> None:
    made = signed_assertion("second")
    assert base64_of(trusted("second"))[:40] in serialized(made).decode()
    with pytest.raises(SignatureInvalid):
        judged(response(made))


def test_a_key_value_in_key_info_is_not_used() -> None:
    made = signed_assertion("second")
    info = at(made, f"{qualified(DS, 'Signature')}/{qualified(DS, 'KeyInfo')}")
    info.clear()
    number = element(qualified(DS, "Modulus"), None, "AQAB")
    info.append(element(qualified(DS, "KeyValue"), None, element(qualified(DS, "RSAKeyValue"), None, number)))
    with pytest.raises(SignatureInvalid):
        judged(response(made))


def test_key_info_is_ignored_if_the_trusted_key_verifies_the_signature() -> None:
    raw = signed_response()
    assert name_in(judged(changed(raw, base64_of(trusted()).encode()[:40], b"A" * 40))) == "ada@example.test"


@pytest.mark.parametrize(("signature", "digest"), [(algorithms.RSA_SHA1, algorithms.SHA256), (algorithms.RSA_SHA256, algorithms.SHA1)])
def test_sha1_is_accepted_only_if_the_caller_allows_it(signature: str, digest: str) -> None:
    root = response(signed_assertion(signature=signature, digest=digest))
    with pytest.raises(AlgorithmRefused, match="SHA-1"):
        judged(root)
    assert name_in(judged(root, allow_sha1=True)) == "ada@example.test"


@pytest.mark.parametrize(
    "method",
    [
        "http://www.w3.org/2000/09/xmldsig#hmac-sha1",
        "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256",
        "http://www.w3.org/2000/09/xmldsig#dsa-sha1",
        "http://www.w3.org/2001/04/xmldsig-more#rsa-md5",
        "",
    ],
)
def test_an_unsupported_signature_algorithm_is_refused(method: str) -> None:
    with pytest.raises(AlgorithmRefused):
        judged(changed(signed_response(), algorithms.RSA_SHA256.encode(), method.encode()), allow_sha1=True)


def test_hmac_with_the_public_certificate_as_its_secret_is_refused() -> None:
    raw = signed_response().replace(algorithms.RSA_SHA256.encode(), b"http://www.w3.org/2001/04/xmldsig-more#hmac-sha256", 1)
    with pytest.raises(AlgorithmRefused):
        judged(parse(raw))


def test_an_rsa_key_is_not_used_as_another_type_of_key() -> None:
    with pytest.raises(SignatureInvalid):
        judged(changed(signed_response(), algorithms.RSA_SHA256.encode(), algorithms.ECDSA_SHA256.encode()))


@pytest.mark.parametrize("name", ["http://www.w3.org/2001/04/xmldsig-more#md5", "http://www.w3.org/2001/04/xmlenc#ripemd160"])
def test_an_unsupported_digest_is_refused(name: str) -> None:
    with pytest.raises(AlgorithmRefused):
        judged(changed(signed_response(), algorithms.SHA256.encode(), name.encode()), allow_sha1=True)


@pytest.mark.parametrize(
    "transform",
    [
        b'<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"><xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/'
        b'Transform" version="1.0"><xsl:template match="/"><x/></xsl:template></xsl:stylesheet></ds:Transform>',
        b'<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><ds:XPath>not(//*)</ds:XPath></ds:Transform>',
        b'<ds:Transform Algorithm="http://www.w3.org/2002/06/xmldsig-filter2"/>',
        b'<ds:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#base64"/>',
        b'<ds:Transform Algorithm="http://www.w3.org/TR/2001/REC-xml-c14n-20010315"/>',
    ],
    ids=["xslt", "xpath", "filter", "base64", "inclusive"],
)
def test_any_other_transform_is_refused(transform: bytes) -> None:
    raw = signed_response()
    exclusive = f'<ds:Transform Algorithm="{EXC_C14N}"/>'.encode()
    for root in (changed(raw, exclusive, transform), changed(raw, ENVELOPED, transform), changed(raw, exclusive, exclusive + transform)):
        with pytest.raises(SignatureRefused):
            judged(root)


def test_a_signature_with_a_second_reference_is_refused() -> None:
    root = parse(signed_response())
    signed_info = inner_assertion(root)[1][0]
    signed_info.append(parse(serialized(signed_info[2])))
    with pytest.raises(SignatureRefused):
        judged(root)


@pytest.mark.parametrize("uri", [b"", b"#_response", b"#xpointer(/)", b"http://127.0.0.1:1/x", b"file:///etc/passwd"])
def test_a_reference_to_another_element_is_refused(uri: bytes) -> None:
    with pytest.raises(SignatureRefused):
        judged(changed(signed_response(), b'URI="#_assertion"', b'URI="' + uri + b'"'))


def test_an_element_without_an_id_is_refused() -> None:
    with pytest.raises(SignatureRefused):
        judged(changed(signed_response(), b' ID="_assertion"', b""))


def test_an_id_that_occurs_twice_is_refused() -> None:
    root = parse(signed_response())
    root.append(element("{urn:x}Other", {"Id": "_assertion"}))
    with pytest.raises(SignatureRefused, match="same ID"):
        judged(root)


def test_two_signatures_are_refused() -> None:
    root = parse(signed_response())
    inside = inner_assertion(root)
    inside.insert(1, parse(serialized(inside[1])))
    with pytest.raises(SignatureRefused):
        judged(root)


def test_a_signature_at_a_position_that_the_schema_forbids_is_refused() -> None:
    root = parse(signed_response())
    inside = inner_assertion(root)
    inside.insert(0, element(qualified(SAML, "Advice")))
    with pytest.raises(SignatureRefused, match="schema"):
        judged(root)


def test_an_object_inside_the_signature_is_refused() -> None:
    root = parse(signed_response())
    inner_assertion(root)[1].append(element(qualified(DS, "Object"), None, assertion("eve@example.test", "_other")))
    with pytest.raises(SignatureRefused):
        judged(root)


def test_an_hmac_output_length_is_refused() -> None:
    root = parse(signed_response())
    inner_assertion(root)[1][0][1].append(element(qualified(DS, "HMACOutputLength"), None, "0"))
    with pytest.raises(AlgorithmRefused):
        judged(root)


@pytest.mark.parametrize(
    "name", ["ada@example.test<!-- -->.evil.test", "<!-- x -->ada@example.test.evil.test", "ada@example.test.ev<!---->il.test"]
)
def test_a_comment_inside_a_name_does_not_shorten_it(name: str) -> None:
    raw = serialized(response(signed_assertion(name_id="ada@example.test.evil.test")))
    root = changed(raw, b"ada@example.test.evil.test", name.encode())
    assert name_in(judged(root)) == "ada@example.test.evil.test"


def test_a_processing_instruction_inside_a_name_does_not_shorten_it() -> None:
    root = changed(signed_response(), b"ada@example.test", b"ada@example.test<?x y?>.evil.test")
    with pytest.raises(SignatureInvalid):
        judged(root)


def test_an_element_inside_a_name_is_refused() -> None:
    root = parse(signed_response())
    at(inner_assertion(root), f"{SUBJECT}/{NAME_ID}").append(element("{urn:x}y"))
    with pytest.raises(XmlError):
        judged(root)


def test_a_canonicalization_with_comments_is_checked_against_the_signature() -> None:
    raw = serialized(response(signed_assertion()))
    # The method with comments is allowed. The signature covers the name of the method, so the changed name makes the signature invalid.
    with pytest.raises(SignatureInvalid):
        judged(changed(raw, EXC_C14N.encode(), EXC_C14N.encode() + b"WithComments"))


def test_a_signature_over_bytes_is_verified_only_with_the_trusted_key() -> None:
    octets = b"SAMLRequest=a%2Bb&RelayState=c"
    made = sign_octets(octets, private_key=key())
    verify_octets(octets, made, algorithms.RSA_SHA256, [trusted("second"), trusted()])
    for wrong in (
        (octets + b"x", made, algorithms.RSA_SHA256),
        (octets, made[:-1], algorithms.RSA_SHA256),
        (octets, made, algorithms.RSA_SHA512),
    ):
        with pytest.raises(SignatureInvalid):
            verify_octets(*wrong, [trusted()])
    with pytest.raises(SignatureInvalid):
        verify_octets(octets, made, algorithms.RSA_SHA256, [trusted("second")])


def test_a_sha1_signature_over_bytes_is_accepted_only_if_the_caller_allows_it() -> None:
    made = sign_octets(b"x", private_key=key(), algorithm=algorithms.RSA_SHA1)
    with pytest.raises(AlgorithmRefused):
        verify_octets(b"x", made, algorithms.RSA_SHA1, [trusted()])
    verify_octets(b"x", made, algorithms.RSA_SHA1, [trusted()], allow_sha1=True)


@pytest.mark.parametrize(
    "name", ["", "rsa-sha256", "http://www.w3.org/2000/09/xmldsig#hmac-sha1", "http://www.w3.org/2000/09/xmldsig#dsa-sha1"]
)
def test_a_signature_over_bytes_with_an_unsupported_algorithm_is_refused(name: str) -> None:
    with pytest.raises(AlgorithmRefused):
        verify_octets(b"x", b"y", name, [trusted()], allow_sha1=True)


def test_only_rsa_keys_can_sign() -> None:
    with pytest.raises(AlgorithmRefused):
        sign_octets(b"x", private_key=key(), algorithm=algorithms.ECDSA_SHA256)
    assert not isinstance(key(), ec.EllipticCurvePrivateKey)


@pytest.mark.parametrize("part", ["SignatureValue", "DigestValue"])
@pytest.mark.parametrize("text", ["", "AAAA", "!", "é"])
def test_an_empty_or_invalid_base64_value_is_an_invalid_signature(part: str, text: str) -> None:
    root = parse(signed_response())
    next(root.iter(qualified(DS, part))).text = text
    with pytest.raises(SignatureInvalid):
        judged(root)


@pytest.mark.parametrize("kind", ["expired", "not for signatures"])
def test_only_the_key_of_a_certificate_is_used(kind: str) -> None:
    """Partners use expired certificates, and certificates that were issued for servers. Only the registration determines trust."""
    past = datetime(2020, 1, 1, tzinfo=UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sp")])
    builder = x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key().public_key(), serial_number=1)
    builder = builder.not_valid_before(past).not_valid_after(past + timedelta(days=1 if kind == "expired" else 36_500))
    if kind != "expired":
        usage = dict.fromkeys(("digital_signature", "content_commitment", "data_encipherment", "key_agreement", "key_cert_sign"), False)
        usage |= dict.fromkeys(("crl_sign", "encipher_only", "decipher_only"), False)
        builder = builder.add_extension(x509.KeyUsage(key_encipherment=True, **usage), critical=True)
    made = builder.sign(key(), hashes.SHA256())
    assert name_in(verified(inner_assertion(parse(signed_response())), [made])) == "ada@example.test"
