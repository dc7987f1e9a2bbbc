"""Client certificates for tests, and the headers in which an edge (the proxy of a custom domain) forwards them to the service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from authapi.edge import mtls
from authapi.services.edge_keys import renew_edge_key
from identity.models import CustomDomain, Tenant
from tests.authapi.assertions import private_key

SUBJECT = (
    (NameOID.COUNTRY_NAME, "AT"),
    (NameOID.ORGANIZATION_NAME, "Example, Inc."),
    (NameOID.ORGANIZATIONAL_UNIT_NAME, "Payments"),
    (NameOID.COMMON_NAME, "client.example.test"),
)
SUBJECT_LINES = "C=AT\nO=Example, Inc.\nOU=Payments\nCN=client.example.test"


def certificate(
    key: str = "first",
    *,
    subject: tuple[tuple[x509.ObjectIdentifier, str], ...] = SUBJECT,
    begins: datetime | None = None,
    ends: datetime | None = None,
) -> str:
    """Return a certificate in PEM for the key of this name.

    It is self-signed, because the service does not check the issuer: this is the task of the edge.
    """
    name = x509.Name([x509.NameAttribute(attribute, value) for attribute, value in subject])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=private_key(key).public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begins or now - timedelta(days=1))
    made = builder.not_valid_after(ends or now + timedelta(days=30)).sign(private_key(key), hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


def edge_key(tenant: Tenant) -> str:
    """Create a new key for the edge of the tenant's own domain."""
    domain = CustomDomain.objects.of(tenant.pk).get(host=f"{tenant.pk}.example.test")
    return renew_edge_key(tenant_id=tenant.pk, domain_id=domain.pk)


def forwarded(key: str, pem: str, verified: str = "SUCCESS") -> dict[str, str]:
    """Return the headers that an edge adds to a request."""
    return {mtls.KEY_HEADER: key, mtls.CERTIFICATE_HEADER: quote(pem, safe=""), mtls.VERIFIED_HEADER: verified}
