"""The only module that signs messages: exclusive canonicalization, one reference to the id of the element, and the certificate."""

from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from signxml.signer import XMLSigner

from authapi.xml import algorithms
from authapi.xml.building import element as new_element
from authapi.xml.certificates import pem_of
from authapi.xml.failures import AlgorithmRefused
from authapi.xml.names import DS, EXC_C14N, qualified
from authapi.xml.parsing import METADATA, Element, parse, serialized

_PLACEHOLDER = "placeholder"


class _Signer(XMLSigner):
    """A signer that accepts SHA-1, which the library refuses. Used only if the settings of a partner select SHA-1."""

    def check_deprecated_methods(self) -> None:
        pass


def signed(
    element: Element,
    *,
    private_key: rsa.RSAPrivateKey,
    certificate: x509.Certificate,
    place: int | None = None,
    id_attribute: str = "ID",
    signature: str = algorithms.RSA_SHA256,
    digest: str = algorithms.SHA256,
) -> Element:
    """Return a signed copy of an element that has an id.

    `place` is the index of the signature among the children; None means last. In messages of SAML 2.0, the signature must follow the Issuer
    (1); in metadata it must be first (0). In assertions of SAML 1.1 it must be last, and `id_attribute` must be `AssertionID`. Sign an
    inner element before the outer element. Callers pass SHA-1 in `signature` or `digest` only if the settings of a partner select it.
    """
    known = {*algorithms.SIGNATURE_METHODS, *algorithms.OLD_SIGNATURE_METHODS}
    if signature not in known or digest not in algorithms.DIGEST_METHODS | algorithms.OLD_DIGEST_METHODS:
        raise AlgorithmRefused
    # Create the signature in a separate tree, because the library searches the whole tree for the id and for the position of the signature.
    alone = parse(serialized(element), METADATA)
    mark = new_element(qualified(DS, "Signature"), {"Id": _PLACEHOLDER})
    alone.insert(len(alone) if place is None else place, mark)
    signer = _Signer(signature_algorithm=signature, digest_algorithm=digest, c14n_algorithm=EXC_C14N)
    made = signer.sign(
        alone,
        key=private_key,
        cert=pem_of(certificate),
        reference_uri=f"#{alone.get(id_attribute)}",
        id_attribute=id_attribute,
    )
    return parse(serialized(made), METADATA)


def sign_octets(octets: bytes, *, private_key: rsa.RSAPrivateKey, algorithm: str = algorithms.RSA_SHA256) -> bytes:
    """Return the separate signature of some octets, as in the redirect binding."""
    methods = {**algorithms.SIGNATURE_METHODS, **algorithms.OLD_SIGNATURE_METHODS}
    if algorithm not in methods or "#rsa-" not in algorithm:
        raise AlgorithmRefused
    return private_key.sign(octets, padding.PKCS1v15(), methods[algorithm])
