"""X.509 certificates of partners and of tenants, read in every format that administrators paste. Pure.

Only the key of a certificate is used: this module does not check names, chains or expiry. Callers show the expiry.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

MAX_CERTIFICATE_CHARACTERS = 16_384
_MOST_CERTIFICATES = 10
_SPACE = re.compile(r"\s+")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


class UnreadableCertificate(ValueError):
    """A certificate is expected, in PEM or in base64 as in a metadata document."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def certificate_of(text: str) -> x509.Certificate:
    """Read one certificate: PEM, or base64 as in metadata. Raises `UnreadableCertificate`."""
    if len(text) > MAX_CERTIFICATE_CHARACTERS:
        raise UnreadableCertificate
    found = _PEM.findall(text)
    if len(found) > 1:
        raise UnreadableCertificate("There is more than one certificate.")
    try:
        der = base64.b64decode(_SPACE.sub("", found[0] if found else text), validate=True)
        certificate = x509.load_der_x509_certificate(der)
        certificate.public_key()
    except (binascii.Error, ValueError, TypeError) as error:
        raise UnreadableCertificate from error
    return certificate


def base64_of(certificate: x509.Certificate) -> str:
    """Return the text of `ds:X509Certificate`."""
    return base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()


def pem_of(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def fingerprint_of(certificate: x509.Certificate) -> str:
    """Return the SHA-256 fingerprint in its usual form: upper-case pairs with colons."""
    digest = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest().upper()
    return ":".join(digest[place : place + 2] for place in range(0, len(digest), 2))


def certificates_of(text: str) -> tuple[x509.Certificate, ...]:
    """Read every certificate of a text: one or several in PEM, for a rollover, or a single certificate in base64."""
    if len(text) > _MOST_CERTIFICATES * MAX_CERTIFICATE_CHARACTERS:
        raise UnreadableCertificate
    found = _PEM.findall(text)
    if len(found) > _MOST_CERTIFICATES:
        raise UnreadableCertificate(f"There are more than {_MOST_CERTIFICATES} certificates.")
    return tuple(certificate_of(each) for each in (found or ([text] if text.strip() else [])))
