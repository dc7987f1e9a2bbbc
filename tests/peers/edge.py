"""Runs nginx in front of a service, with the configuration in `deploy/`. Issues certificates of a private authority for clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from config.launcher.tls import ServerCertificate
from identity.models import Tenant
from tests.authapi.certificates import edge_key
from tests.conformance.web_process import web_process
from tests.factories.authapi import host_of
from tests.peers.test_deployment import configured, running_nginx
from tests.ports import free_port


class Authority:
    """A certificate authority that signs certificates of servers and of clients."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Private authority")
        self._own = self._draft(self._name, self._key).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.file = directory / "authority.pem"
        self.file.write_bytes(self._signed(self._own))

    def issue(self, subject: str, *names: str) -> tuple[Path, Path]:
        """Create a key and a certificate for a subject and for these host names. Return the files of the certificate and of the key."""
        key = ec.generate_private_key(ec.SECP256R1())
        draft = self._draft(_name(subject), key)
        if names:
            draft = draft.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        chain, file = self._directory / f"{subject}.pem", self._directory / f"{subject}.key"
        chain.write_bytes(self._signed(draft))
        plain = serialization.NoEncryption()
        file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
        return chain, file

    def _draft(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(issuer_name=self._name, subject_name=subject, public_key=key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        return builder.not_valid_after(now + timedelta(days=30))

    def _signed(self, draft: x509.CertificateBuilder) -> bytes:
        return draft.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True)
class Edge:
    """The host and port at which nginx serves the service. A program must be configured to resolve the host to this machine."""

    host: str
    port: int
    authority: Authority

    @property
    def issuer(self) -> str:
        return f"https://{self.host}:{self.port}/"


@contextmanager
def edge(tenant: Tenant, directory: Path) -> Iterator[Edge]:
    """Serve the tenant at its host, and at the host with the prefix `mtls.`, for which nginx requests client certificates."""
    authority, host = Authority(directory), host_of(tenant).host
    chain, key = authority.issue("server", host, f"mtls.{host}")
    served = ServerCertificate(chain, key, authority.file)
    with web_process("uvicorn", INSECURE_HTTP="0", TRUSTED_PROXIES="127.0.0.1") as web:
        port = free_port()
        (directory / "edge-keys.map").write_text(f"mtls.{host}  {edge_key(tenant)};\n")
        configuration = configured(directory, served, port=port, plain=free_port(), upstream=web.address[1])
        with running_nginx(configuration, port):
            yield Edge(host, port, authority)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
