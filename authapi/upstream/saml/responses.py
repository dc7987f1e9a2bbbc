"""Turns the bytes that a browser sends into a trusted assertion (SAML Profiles 2.0, 4.1.4). Pure: the clock is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.certificates import Certificate, CertificateUnreadable, read_certificates
from authapi.upstream.saml.facts import Assertion
from authapi.upstream.saml.judging import Expected, check_assertion, check_response, check_status
from authapi.upstream.saml.reading import assertion_of, response_of, saml, samlp
from authapi.xml.encryption import decrypted
from authapi.xml.failures import DecryptionFailed, SignatureInvalid, XmlError
from authapi.xml.names import DS, qualified
from authapi.xml.parsing import Element, children, from_base64, local_name, parse, text_of
from authapi.xml.verifying import is_signed, verified

_CERTIFICATE_PATH = ("Signature", "KeyInfo", "X509Data", "X509Certificate")


@dataclass(frozen=True)
class Accepted:
    """A valid assertion, to be accepted once: its id must be remembered until `until`."""

    assertion: Assertion
    until: datetime


def read_message(encoded: str) -> bytes:
    """Decode a message of the POST binding. Raises `UpstreamFailed`."""
    try:
        return from_base64(encoded)
    except XmlError as error:
        raise _refused(f"The message cannot be read: {error}") from error


def request_id_of(raw: bytes) -> str:
    """Return the id of the request that a response claims to answer; empty if it names no request. Verifies nothing.

    Raises `UpstreamFailed`.
    """
    try:
        return _response(raw).get("InResponseTo") or ""
    except XmlError as error:
        raise _refused(f"The message cannot be read: {error}") from error


def accepted(raw: bytes, certificates: Sequence[Certificate], expected: Expected, *, keys: Sequence[RSAPrivateKey] = ()) -> Accepted:
    """Return the assertion of a response. `keys` decrypt an encrypted assertion. Raises `UpstreamFailed`.

    1. For a status other than success, an error with the provider's own text is raised.
    2. If the response is signed, its signature is verified; then only the signed part is read.
    3. The response must name the request of this login. If the provider began the login, the response must name no request.
    4. If the one assertion is encrypted, it is decrypted. If it is signed, its signature is verified. The response or the assertion must be
       signed.
    5. The assertion must be for this service and this login, and valid now.
    """
    try:
        root = _response(raw)
        check_status(response_of(root))
        covered = is_signed(root)
        if covered:
            root = verified_by(root, certificates, "response")
        check_response(response_of(root, is_signed=covered), expected)
        element = _assertion(root, certificates, keys, is_covered=covered)
        assertion = assertion_of(element, keys)
    except XmlError as error:
        raise _refused(str(error)) from error
    return Accepted(assertion, check_assertion(assertion, expected))


def _response(raw: bytes) -> Element:
    root = parse(raw)
    if root.tag != samlp("Response"):
        raise _refused(f"A Response is expected; the message is of the type {local_name(root)[:60]}.")
    if root.get("Version") != "2.0":
        raise _refused("The response is not SAML 2.0.")
    return root


def _assertion(root: Element, certificates: Sequence[Certificate], keys: Sequence[RSAPrivateKey], *, is_covered: bool) -> Element:
    plain, encrypted = list(children(root, saml("Assertion"))), list(children(root, saml("EncryptedAssertion")))
    if len(plain) + len(encrypted) != 1:
        raise _refused("The response has no assertion." if not plain + encrypted else "The response has several assertions.")
    if encrypted:
        element = opened(encrypted[0], keys)
        if element.tag != saml("Assertion"):
            raise _refused("The encrypted element is not an assertion.")
    else:
        element = plain[0]
    if is_signed(element):
        return verified_by(element, certificates, "assertion")
    if not is_covered:
        raise _refused("Neither the response nor the assertion is signed. Configure the provider to sign one of them.")
    return element


def opened(holder: Element, keys: Sequence[RSAPrivateKey]) -> Element:
    """Decrypt an encrypted assertion and return the assertion. Raises `UpstreamFailed`."""
    try:
        element = decrypted(holder, keys)
    except DecryptionFailed as error:
        raise _refused(
            "The assertion is encrypted for another key. Give the provider the certificate of our metadata (/samlp/metadata?connection=)."
        ) from error
    return element


def verified_by(element: Element, certificates: Sequence[Certificate], what: str, *, id_attribute: str = "ID") -> Element:
    """Return the signed element, after one of the certificates verified its signature.

    Raises `UnknownSigner` if no certificate verifies the signature, and `XmlError` for other faults.
    """
    try:
        return verified(element, [certificate.parsed for certificate in certificates], id_attribute=id_attribute)
    except SignatureInvalid as error:
        raise UnknownSigner(f"The signature of the {what} is invalid. {_whose(element, certificates)}") from error


class UnknownSigner(UpstreamFailed):
    """No certificate of the connection verifies a signature. The caller fetches the metadata again, which may contain a new certificate."""

    def __init__(self, detail: str) -> None:
        super().__init__(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)


def _whose(element: Element, certificates: Sequence[Certificate]) -> str:
    """Return a sentence that compares the certificate in the message with the certificates of the connection.

    The usual cause of an invalid signature is a new certificate of the provider.
    """
    known = ", ".join(certificate.thumbprint[:16] for certificate in certificates)
    named = _named_certificate(element)
    if named is None:
        return f"The message names no certificate; the SHA-256 thumbprints of the connection's certificates begin with {known}."
    if named in certificates:
        return "The message names a certificate of the connection, so the message was changed after it was signed."
    return (
        f"The message names the certificate of {named.subject[:100]} (SHA-256 {named.thumbprint[:16]}...); the thumbprints of the"
        f" connection's certificates begin with {known}. If the provider has a new certificate, add it."
    )


def _named_certificate(element: Element) -> Certificate | None:
    places = [element]
    for name in _CERTIFICATE_PATH:
        places = [inner for place in places for inner in children(place, qualified(DS, name))]
    try:
        return next(iter(read_certificates([text_of(place) for place in places[:1]])), None)
    except (CertificateUnreadable, XmlError):
        return None


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)
