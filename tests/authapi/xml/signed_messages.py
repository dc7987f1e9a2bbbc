"""A signed response as a provider sends it, for tests that change the response."""

from __future__ import annotations

from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from authapi.xml import algorithms
from authapi.xml.building import element
from authapi.xml.certificates import certificate_of
from authapi.xml.names import SAML, SAMLP, qualified
from authapi.xml.parsing import Element, child, parse, serialized
from authapi.xml.signing import signed
from tests.authapi.assertions import private_key
from tests.authapi.certificates import certificate

ASSERTION = qualified(SAML, "Assertion")
RESPONSE = qualified(SAMLP, "Response")
SUBJECT = qualified(SAML, "Subject")
NAME_ID = qualified(SAML, "NameID")


def trusted(name: str = "first") -> x509.Certificate:
    return _trusted(name)


@cache
def _trusted(name: str) -> x509.Certificate:
    return certificate_of(certificate(name))


def key(name: str = "first") -> rsa.RSAPrivateKey:
    found = private_key(name)
    assert isinstance(found, rsa.RSAPrivateKey)
    return found


def assertion(name_id: str = "ada@example.test", identifier: str = "_assertion") -> Element:
    return element(
        ASSERTION,
        {"ID": identifier, "Version": "2.0", "IssueInstant": "2026-11-23T10:00:00Z"},
        element(qualified(SAML, "Issuer"), None, "urn:provider"),
        element(SUBJECT, None, element(NAME_ID, None, name_id)),
    )


def response(content: Element, identifier: str = "_response") -> Element:
    return element(
        RESPONSE,
        {"ID": identifier, "Version": "2.0", "IssueInstant": "2026-11-23T10:00:00Z"},
        element(qualified(SAML, "Issuer"), None, "urn:provider"),
        content,
    )


def signed_assertion(
    by: str = "first", *, signature: str = algorithms.RSA_SHA256, digest: str = algorithms.SHA256, name_id: str = "ada@example.test"
) -> Element:
    return signed(assertion(name_id), private_key=key(by), certificate=trusted(by), place=1, signature=signature, digest=digest)


def signed_response() -> bytes:
    """Return a response whose assertion is signed."""
    return serialized(response(signed_assertion()))


def inner_assertion(root: Element) -> Element:
    """Return the assertion at the position where SAML software reads it: as a child of the root."""
    found = child(root, ASSERTION)
    assert found is not None
    return found


def at(element: Element, path: str) -> Element:
    """Return the element at a path. Fail if there is no such element."""
    found = element.find(path)
    assert found is not None, path
    return found


def name_in(verified_assertion: Element) -> str:
    found = verified_assertion.find(f"{SUBJECT}/{NAME_ID}")
    assert found is not None
    return found.text or ""


def changed(raw: bytes, old: bytes, new: bytes) -> Element:
    """Return the document with the first occurrence of `old` replaced by `new`. Fail if `old` does not occur."""
    assert old in raw
    return parse(raw.replace(old, new, 1))
