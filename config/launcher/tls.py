"""A private certificate authority for `make up TLS=1`. It is created once, and signs a certificate for this machine's loopback names."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from config.launcher.directories import write_private
from config.launcher.options import DEMO_TENANT

_AUTHORITY_DAYS = 3650
# Browsers refuse server certificates that are valid for more than 398 days.
_SERVER_DAYS = 390
_RENEWAL = timedelta(days=30)


@dataclass(frozen=True)
class ServerCertificate:
    """The files of the web server, and the authority that clients must trust."""

    chain: Path
    key: Path
    authority: Path


def server_certificate(data_dir: Path) -> ServerCertificate:
    """Return a certificate for localhost that is valid for at least another month.

    Creates a certificate authority only if none exists or the existing one expires soon.
    """
    directory = data_dir / "tls"
    authority_certificate, authority_key = _authority(directory)
    files = ServerCertificate(directory / "server.pem", directory / "server.key", directory / "ca.pem")
    if not files.chain.exists() or _expires_soon(files.chain):
        key = ec.generate_private_key(ec.SECP256R1())
        issued = _server(key, authority_certificate, authority_key)
        write_private(files.key, _pem(key))
        write_private(files.chain, _text(issued) + _text(authority_certificate))
    return files


def _authority(directory: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate_file, key_file = directory / "ca.pem", directory / "ca.key"
    if certificate_file.exists() and key_file.exists() and not _expires_soon(certificate_file):
        key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        if isinstance(key, ec.EllipticCurvePrivateKey):
            return x509.load_pem_x509_certificate(certificate_file.read_bytes()), key
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Private authority of {directory.parent.parent.name}"[:64])])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _draft(name, name, key, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(key_file, _pem(key))
    write_private(certificate_file, _text(certificate))
    # Delete the server's certificate: it was signed by the previous authority, so clients that trust the new authority would refuse it.
    (directory / "server.pem").unlink(missing_ok=True)
    return certificate, key


def _server(key: ec.EllipticCurvePrivateKey, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    addresses = [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    names = [x509.DNSName("localhost"), x509.DNSName(f"{DEMO_TENANT}.localhost"), *(x509.IPAddress(address) for address in addresses)]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    authority_identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _draft(name, authority.subject, key, _SERVER_DAYS)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(authority_identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _draft(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    draft = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    # An hour of tolerance for clocks that are behind.
    return draft.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=days))


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _expires_soon(path: Path) -> bool:
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc < datetime.now(UTC) + _RENEWAL


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption()).decode()


def _text(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
