"""Client certificates: parsing, thumbprint, subject, and registered subjects. Pure."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID, ObjectIdentifier

MAX_CERTIFICATE_BYTES = 4096
_BEGIN = "-----BEGIN CERTIFICATE-----"
# The short names of RFC 4514, 3, and the short names that OpenSSL prints. Every other attribute is named by its dotted number.
_ATTRIBUTES: dict[str, ObjectIdentifier] = {
    "C": NameOID.COUNTRY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "S": NameOID.STATE_OR_PROVINCE_NAME,
    "L": NameOID.LOCALITY_NAME,
    "STREET": NameOID.STREET_ADDRESS,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "CN": NameOID.COMMON_NAME,
    "SN": NameOID.SURNAME,
    "GN": NameOID.GIVEN_NAME,
    "UID": NameOID.USER_ID,
    "DC": NameOID.DOMAIN_COMPONENT,
    "SERIALNUMBER": NameOID.SERIAL_NUMBER,
    "EMAILADDRESS": NameOID.EMAIL_ADDRESS,
    "ORGANIZATIONIDENTIFIER": NameOID.ORGANIZATION_IDENTIFIER,
    "BUSINESSCATEGORY": NameOID.BUSINESS_CATEGORY,
    "JURISDICTIONC": NameOID.JURISDICTION_COUNTRY_NAME,
}
# Attribute and value of each component, in the order of the certificate.
Subject = tuple[tuple[str, str], ...]


class MalformedCertificate(ValueError):
    """Expected exactly one readable certificate."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class ReadCertificate:
    """The relevant parts of a certificate. `subject` is empty if it cannot be compared component by component."""

    thumbprint: str
    subject: Subject
    not_before: datetime
    not_after: datetime

    def is_valid_at(self, now: datetime) -> bool:
        return self.not_before <= now <= self.not_after


@lru_cache(maxsize=1024)
def read_certificate(pem: str) -> ReadCertificate:
    """Parse exactly one certificate. Raises `MalformedCertificate`."""
    if len(pem) > MAX_CERTIFICATE_BYTES or pem.count(_BEGIN) != 1:
        raise MalformedCertificate
    try:
        certificate = x509.load_pem_x509_certificate(pem.encode("ascii"))
        der = certificate.public_bytes(Encoding.DER)
        return ReadCertificate(
            # RFC 8705, 3.1.
            thumbprint=base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("="),
            subject=_subject_of(certificate.subject),
            not_before=certificate.not_valid_before_utc,
            not_after=certificate.not_valid_after_utc,
        )
    except (ValueError, x509.InvalidVersion, x509.DuplicateExtension) as error:
        raise MalformedCertificate from error


def read_subject(text: str) -> Subject:
    """Parse a registered subject: one `NAME=value` per line, in the order of the certificate. Raises `MalformedCertificate`."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise MalformedCertificate("Expected one NAME=value per line.")
    return tuple(_component(line) for line in lines)


def subject_lines(subject: Subject) -> str:
    """Format a subject for `read_subject`."""
    names = {oid.dotted_string: name for name, oid in reversed(_ATTRIBUTES.items())}
    return "\n".join(f"{names.get(attribute, attribute)}={value}" for attribute, value in subject)


def _component(line: str) -> tuple[str, str]:
    name, separator, value = line.partition("=")
    name, value = name.strip().upper(), value.strip()
    known = _ATTRIBUTES.get(name)
    if not separator or not value or (known is None and not _is_dotted(name)):
        raise MalformedCertificate(f"Expected NAME=value, got {line[:64]!r}.")
    return (known.dotted_string if known else name, value)


def _is_dotted(name: str) -> bool:
    try:
        ObjectIdentifier(name)
    except ValueError:
        return False
    return True


def _subject_of(name: x509.Name) -> Subject:
    components = []
    for parts in name.rdns:
        attributes = list(parts)
        # These two kinds of components cannot be compared: the parts of a multi-valued component have no order, and a value that is not
        # text has no fixed spelling.
        if len(attributes) != 1 or not isinstance(attributes[0].value, str):
            return ()
        components.append((attributes[0].oid.dotted_string, attributes[0].value))
    return tuple(components)
