"""The private certificate authority of `make up TLS=1`."""

from __future__ import annotations

import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest

from config.launcher.tls import ServerCertificate, server_certificate


def handshake(certificate: ServerCertificate, name: str, authority: Path) -> None:
    """Connect a real TLS client to a real TLS server over a socket pair. Raise the errors of the client."""
    server_end, client_end = socket.socketpair()
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certificate.chain, certificate.key)

    def serve() -> None:
        try:
            with server_context.wrap_socket(server_end, server_side=True):
                pass
        except (ssl.SSLError, OSError):
            # The client has refused the certificate, and the error of the client gives the reason.
            return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        context = ssl.create_default_context(cafile=str(authority))
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        with context.wrap_socket(client_end, server_hostname=name):
            pass
    finally:
        client_end.close()
        thread.join(10)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "demo.localhost"])
def test_a_client_that_trusts_the_authority_accepts_every_loopback_name(tmp_path: Path, name: str) -> None:
    certificate = server_certificate(tmp_path)

    handshake(certificate, name, certificate.authority)


def test_a_client_that_trusts_another_authority_refuses_the_certificate(tmp_path: Path) -> None:
    certificate = server_certificate(tmp_path / "one")
    other = server_certificate(tmp_path / "other")

    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(certificate, "localhost", other.authority)


def test_the_authority_and_the_certificate_are_reused_and_their_keys_are_private(tmp_path: Path) -> None:
    first = server_certificate(tmp_path)
    before = (first.chain.read_bytes(), first.authority.read_bytes())

    second = server_certificate(tmp_path)

    assert (second.chain.read_bytes(), second.authority.read_bytes()) == before
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "tls").iterdir()} == {0o600}
