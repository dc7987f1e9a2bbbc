"""The only module that verifies signatures of messages, and the only source of trusted elements.

Keys come from the caller and never from the message. The result is parsed again from the exact bytes that were
signed, so no caller gets elements that an attacker has added around, beside or inside a signed element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from lxml import etree
from signxml.algorithms import DigestAlgorithm, SignatureMethod
from signxml.exceptions import SignXMLException
from signxml.verifier import SignatureConfiguration, VerifyResult, XMLVerifier

from authapi.xml import algorithms
from authapi.xml.failures import AlgorithmRefused, SignatureInvalid, SignatureMissing, SignatureRefused
from authapi.xml.names import DS, EXC_C14N, ID_ATTRIBUTES, qualified
from authapi.xml.parsing import METADATA, Element, parse, serialized

_SIGNATURE = qualified(DS, "Signature")
_ISSUER = "Issuer"


def is_signed(element: Element) -> bool:
    """Tell whether the element has a signature as a child, valid or not."""
    return next(element.iterchildren(_SIGNATURE), None) is not None


def verified(element: Element, certificates: Sequence[x509.Certificate], *, allow_sha1: bool = False, id_attribute: str = "ID") -> Element:
    """Verify the signature of `element` with the certificates; return the signed element. Use the result, never the argument.

    1. No id occurs twice in the whole document.
    2. The element has exactly one signature as a child: first, after its Issuer, or last.
    3. The signature has the structure that SAML requires: one reference, to the id of this element, with the enveloped transform and
       exclusive canonicalization. Nothing else is inside the signature.
    4. `algorithms` lists all algorithms of the signature. SHA-1 is accepted only if the caller opts in.
    5. The key of one of the certificates verifies the signature. Keys in the message are removed first.
    6. The signed bytes, parsed again, are this element.

    Raises `SignatureMissing`, `SignatureRefused`, `AlgorithmRefused`, `SignatureInvalid`.
    """
    _check_ids(element)
    signature = _own_signature(element)
    _check_form(signature, element.get(id_attribute), allow_sha1=allow_sha1)
    alone = parse(serialized(element), METADATA)
    _drop_key_info(alone)
    method = str(signature[0][1].get("Algorithm"))
    for certificate in _fitting(certificates, method):
        signed = _signed_bytes(alone, certificate, id_attribute, allow_sha1=allow_sha1)
        if signed is not None:
            return _as_signed(signed, element, id_attribute)
    raise SignatureInvalid


def verify_octets(
    octets: bytes, signature: bytes, algorithm: str, certificates: Sequence[x509.Certificate], *, allow_sha1: bool = False
) -> None:
    """Check the separate signature of some octets, as in the redirect binding. Raises `AlgorithmRefused` and `SignatureInvalid`."""
    methods = _signature_methods(allow_sha1=allow_sha1)
    if algorithm not in methods:
        raise AlgorithmRefused(_refused_algorithm(algorithm))
    digest = methods[algorithm]
    for certificate in _fitting(certificates, algorithm):
        key = certificate.public_key()
        try:
            if isinstance(key, rsa.RSAPublicKey):
                key.verify(signature, octets, padding.PKCS1v15(), digest)
            elif isinstance(key, ec.EllipticCurvePublicKey):
                key.verify(signature, octets, ec.ECDSA(digest))
            return
        except InvalidSignature:
            continue
    raise SignatureInvalid


def _check_ids(element: Element) -> None:
    seen: set[str] = set()
    for each in element.getroottree().iter(etree.Element):
        for name in ID_ATTRIBUTES:
            value = each.get(name)
            if value is None:
                continue
            if value in seen:
                raise SignatureRefused("Two elements of the document have the same ID.")
            seen.add(value)


def _own_signature(element: Element) -> Element:
    signatures = list(element.iterchildren(_SIGNATURE))
    if not signatures:
        raise SignatureMissing
    if len(signatures) > 1:
        raise SignatureRefused("The element has more than one signature.")
    signature = signatures[0]
    before = signature.getprevious()
    stands_first = before is None or (etree.QName(before).localname == _ISSUER and before.getprevious() is None)
    if not stands_first and signature.getnext() is not None:
        raise SignatureRefused("The signature is not at a place that the schema allows.")
    return signature


def _check_form(signature: Element, expected_id: str | None, *, allow_sha1: bool) -> None:
    if not expected_id:
        raise SignatureRefused("The signed element has no ID.")
    parts = [etree.QName(part).localname for part in signature]
    if parts not in (["SignedInfo", "SignatureValue"], ["SignedInfo", "SignatureValue", "KeyInfo"]) or not _all_of(signature, DS):
        raise SignatureRefused("The signature has other parts than SignedInfo, SignatureValue and KeyInfo.")
    signed_info = signature[0]
    if [etree.QName(part).localname for part in signed_info] != ["CanonicalizationMethod", "SignatureMethod", "Reference"]:
        raise SignatureRefused("The signature does not have exactly one reference.")
    if not _all_of(signed_info, DS):
        raise SignatureRefused
    canonicalization, method, reference = signed_info
    _check_canonicalization(canonicalization)
    if len(method) or method.get("Algorithm") not in _signature_methods(allow_sha1=allow_sha1):
        raise AlgorithmRefused(_refused_algorithm(method.get("Algorithm")))
    _check_reference(reference, expected_id, allow_sha1=allow_sha1)


def _check_reference(reference: Element, expected_id: str, *, allow_sha1: bool) -> None:
    # SAML core, 5.4.2: the reference names the ID of the element that has the signature. `URI=""` is not accepted.
    if reference.get("URI") != f"#{expected_id}" or reference.get("Type") is not None:
        raise SignatureRefused("The reference of the signature names an element other than the parent of the signature.")
    if [etree.QName(part).localname for part in reference] != ["Transforms", "DigestMethod", "DigestValue"] or not _all_of(reference, DS):
        raise SignatureRefused("The reference has no transforms, or unexpected parts.")
    transforms, digest, _ = reference
    names = [transform.get("Algorithm") for transform in transforms]
    # SAML core, 5.4.4: no other transforms. XSLT and XPath could compute anything.
    if not _all_of(transforms, DS) or len(names) not in (1, 2) or names[0] != algorithms.ENVELOPED or len(transforms[0]):
        raise SignatureRefused("Only the enveloped signature and exclusive canonicalization are accepted as transforms.")
    for transform in list(transforms)[1:]:
        _check_canonicalization(transform)
    digests = algorithms.DIGEST_METHODS | (algorithms.OLD_DIGEST_METHODS if allow_sha1 else frozenset())
    if len(digest) or digest.get("Algorithm") not in digests:
        raise AlgorithmRefused(_refused_algorithm(digest.get("Algorithm")))


def _check_canonicalization(element: Element) -> None:
    if element.get("Algorithm") not in algorithms.CANONICAL_FORMS:
        raise AlgorithmRefused("Only exclusive canonicalization 1.0 is accepted.")
    inside = list(element)
    if len(inside) > 1 or (inside and (inside[0].tag != qualified(EXC_C14N, "InclusiveNamespaces") or len(inside[0]))):
        raise SignatureRefused("The canonicalization has unexpected parts.")


def _all_of(element: Element, namespace: str) -> bool:
    return all(etree.QName(part).namespace == namespace for part in element)


def _signature_methods(*, allow_sha1: bool) -> dict[str, hashes.HashAlgorithm]:
    return {**algorithms.SIGNATURE_METHODS, **(algorithms.OLD_SIGNATURE_METHODS if allow_sha1 else {})}


def _refused_algorithm(name: str | None) -> str:
    if name in {**algorithms.OLD_SIGNATURE_METHODS, algorithms.SHA1: None}:
        return "The signature uses SHA-1, which is not allowed for this partner."
    return "The signature uses an algorithm that is not allowed."


def _fitting(certificates: Iterable[x509.Certificate], method: str) -> list[x509.Certificate]:
    """Return the certificates whose key has the type that the algorithm needs.

    So a key is never used with an algorithm for another type.
    """
    if "#ecdsa-" in method:
        return [each for each in certificates if isinstance(each.public_key(), ec.EllipticCurvePublicKey)]
    return [each for each in certificates if _is_long_rsa(each.public_key())]


def _is_long_rsa(key: object) -> bool:
    return isinstance(key, rsa.RSAPublicKey) and key.key_size >= algorithms.MIN_RSA_BITS


def _drop_key_info(element: Element) -> None:
    # KeyInfo is outside of SignedInfo, and the enveloped transform removes the whole signature. So the removal of KeyInfo does not change
    # the digest.
    for signature in element.iterchildren(_SIGNATURE):
        for key_info in list(signature.iterchildren(qualified(DS, "KeyInfo"))):
            signature.remove(key_info)


def _signed_bytes(element: Element, certificate: x509.Certificate, id_attribute: str, *, allow_sha1: bool) -> bytes | None:
    # Let the library verify as if at the beginning of the certificate's validity, because it would refuse an expired certificate. Only
    # the key of the certificate matters here; callers show when the certificate expires, and warn before this time.
    configuration = replace(_configuration(allow_sha1), verification_time=certificate.not_valid_before_utc)
    try:
        result = XMLVerifier().verify(element, x509_cert=certificate, id_attribute=id_attribute, expect_config=configuration)
    except (SignXMLException, etree.LxmlError, ValueError, TypeError):
        # The library also raises these errors if a digest or a signature is empty, or is not base64.
        return None
    return result.signed_data if isinstance(result, VerifyResult) else None


@lru_cache(maxsize=2)
def _configuration(allow_sha1: bool) -> SignatureConfiguration:  # noqa: FBT001  # the cache needs positional arguments
    digests = algorithms.DIGEST_METHODS | (algorithms.OLD_DIGEST_METHODS if allow_sha1 else frozenset())
    return SignatureConfiguration(
        location="./",
        expect_references=1,
        signature_methods=frozenset(SignatureMethod(name) for name in _signature_methods(allow_sha1=allow_sha1)),
        digest_algorithms=frozenset(DigestAlgorithm(name) for name in digests),
    )


def _as_signed(signed: bytes, element: Element, id_attribute: str) -> Element:
    again = parse(signed, METADATA)
    if again.tag != element.tag or again.get(id_attribute) != element.get(id_attribute):
        raise SignatureInvalid
    return again
