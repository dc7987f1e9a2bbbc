"""Certificates of providers: read from options and metadata, in every format that administrators paste. Pure.

Only the key of a certificate is used. The service trusts a certificate because an administrator entered it, or because it is in the
provider's metadata; so no chain of certificates is checked. An expired certificate still verifies: providers often replace a certificate
late, and logins must not fail for this reason. Pages show the expiry and warn before it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

# A login tries one certificate after another, so more certificates would slow down logins.
MOST_CERTIFICATES = 10
_MOST_CHARACTERS = 64 * 1024
# NIST SP 800-131A: shorter keys can be factored. A very long key costs too much CPU time.
_SHORTEST_RSA, _LONGEST_RSA = 2048, 8192
_PEM = re.compile(r"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.*?)-----END (?:X509 |TRUSTED )?CERTIFICATE-----", re.DOTALL)


class CertificateUnreadable(ValueError):
    """The text has no usable certificate. The message gives the reason and never quotes the text."""


@dataclass(frozen=True)
class Certificate:
    """One certificate of a provider. Certificates with equal bytes are equal."""

    der: bytes = field(repr=False)
    parsed: x509.Certificate = field(compare=False, repr=False)
    subject: str = field(compare=False)

    @property
    def not_before(self) -> datetime:
        return self.parsed.not_valid_before_utc

    @property
    def not_after(self) -> datetime:
        return self.parsed.not_valid_after_utc

    @property
    def thumbprint(self) -> str:
        """SHA-256 of the certificate, in the form that common tools print."""
        return hashlib.sha256(self.der).hexdigest()

    @property
    def text(self) -> str:
        """The certificate in base64 without line breaks, as in metadata."""
        return base64.b64encode(self.der).decode()

    def is_expired(self, now: datetime) -> bool:
        return self.not_after <= now

    def expires_within(self, span: timedelta, now: datetime) -> bool:
        return self.not_after <= now + span


def read_certificates(value: Any) -> tuple[Certificate, ...]:
    """Return the certificates of an option without duplicates: PEM blocks, base64 of DER, base64 of PEM, or a list of these.

    Raises `CertificateUnreadable`.
    """
    found: dict[bytes, Certificate] = {}
    for der in _encoded(value):
        found.setdefault(der, certificate_of(der))
        if len(found) > MOST_CERTIFICATES:
            raise CertificateUnreadable(f"More than {MOST_CERTIFICATES} certificates.")
    return tuple(found.values())


def certificate_of(der: bytes) -> Certificate:
    """Return the certificate with these DER bytes. Raises `CertificateUnreadable`."""
    try:
        parsed = x509.load_der_x509_certificate(der)
        key = parsed.public_key()
        subject = parsed.subject.rfc4514_string()
    except (ValueError, UnsupportedAlgorithm, TypeError) as error:
        raise CertificateUnreadable("A certificate cannot be read.") from error
    if isinstance(key, RSAPublicKey) and not _SHORTEST_RSA <= key.key_size <= _LONGEST_RSA:
        raise CertificateUnreadable(f"The RSA key of a certificate has {key.key_size} bits; at least {_SHORTEST_RSA} are needed.")
    if not isinstance(key, RSAPublicKey | EllipticCurvePublicKey):
        raise CertificateUnreadable("The key of a certificate must be an RSA key or an elliptic-curve key.")
    shown = "".join(character for character in subject if character.isprintable())[:200]
    return Certificate(der, parsed, shown or "without a name")


def _encoded(value: Any) -> Iterator[bytes]:
    """Yield the DER bytes of each certificate in an option."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _encoded(item)
        return
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        raise CertificateUnreadable("A certificate is expected as PEM or as base64.")
    blocks = _PEM.findall(value)
    if blocks:
        for block in blocks:
            yield _decoded(block)
        return
    plain = _decoded(value)
    # Some provider consoles export the whole PEM file encoded in base64.
    inner = _PEM.findall(plain.decode("ascii", "replace")) if plain.lstrip().startswith(b"-----BEGIN") else []
    if inner:
        for block in inner:
            yield _decoded(block)
        return
    yield plain


def _decoded(text: str) -> bytes:
    try:
        der = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise CertificateUnreadable("A certificate is neither PEM nor base64.") from error
    if not der:
        raise CertificateUnreadable("A certificate is empty.")
    return der
