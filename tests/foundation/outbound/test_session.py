from __future__ import annotations

import gzip
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path

import pytest

from config.launcher.tls import ServerCertificate, server_certificate
from foundation.outbound import dialing
from foundation.outbound.dialing import resolve
from foundation.outbound.outcomes import (
    MAX_BODY_BYTES,
    AddressRefused,
    AnswerTooLarge,
    ConnectFailed,
    ConnectionLost,
    DeadlinePassed,
    HostUnresolved,
    OutboundError,
    OutboundRules,
    TlsFailed,
    UrlRefused,
)
from foundation.outbound.session import OutboundSession, outbound_session
from tests.deadlines import own_time
from tests.factories.scim import Misbehaviour, misbehaving_server, reply, sequence
from tests.factories.scim_runs import LOOPBACK


def fetch(session: OutboundSession, url: str, *, seconds: float = 3.0, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    answer = session.send(method, url, headers={"Authorization": "Bearer t"}, body=body, deadline=time.monotonic() + seconds)
    return answer.status, answer.body


def resolving(*addresses: str) -> Callable[[str, int, float], list[str]]:
    return lambda host, port, seconds: list(addresses)


def test_the_connection_uses_the_checked_address_and_the_host_header_keeps_the_name() -> None:
    with misbehaving_server(sequence(reply(200, raw=b"ok"))) as server:
        session = OutboundSession(LOOPBACK, resolver=resolving("127.0.0.1"))
        assert fetch(session, f"http://scim.example.test:{server.port}/a") == (200, b"ok")
        assert server.received[0].headers["host"] == f"scim.example.test:{server.port}"


def test_a_host_is_refused_if_one_of_its_addresses_is_refused() -> None:
    with misbehaving_server(sequence(reply(200))) as server:
        session = OutboundSession(LOOPBACK, resolver=resolving("127.0.0.1", "10.0.0.1"))
        with pytest.raises(AddressRefused) as refused:
            fetch(session, f"http://scim.example.test:{server.port}/")
        assert server.received == []
    assert "10.0.0.1" not in str(refused.value)


def test_a_host_name_whose_address_changes_is_checked_on_every_connection() -> None:
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    with misbehaving_server(sequence(reply(200, headers={"Connection": "close"}))) as server:
        session = OutboundSession(LOOPBACK, resolver=lambda host, port, seconds: answers.pop(0))
        assert fetch(session, f"http://scim.example.test:{server.port}/")[0] == 200
        with pytest.raises(AddressRefused):
            fetch(session, f"http://scim.example.test:{server.port}/")


def test_requests_on_one_connection_resolve_the_host_name_once() -> None:
    asked: list[str] = []

    def resolver(host: str, port: int, seconds: float) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    with misbehaving_server(sequence(reply(204))) as server:
        session = OutboundSession(LOOPBACK, resolver=resolver)
        for _ in range(5):
            assert fetch(session, f"http://scim.example.test:{server.port}/")[0] == 204
    assert asked == ["scim.example.test"]


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\n b"])
def test_a_header_value_that_contains_another_header_is_refused(value: str) -> None:
    with misbehaving_server(sequence(reply(200))) as server:
        session = OutboundSession(LOOPBACK, resolver=resolving("127.0.0.1"))
        with pytest.raises(UrlRefused):
            session.send(
                "GET", f"http://scim.example.test:{server.port}/", headers={"X-A": value}, body=None, deadline=time.monotonic() + 3
            )
        assert server.received == []


@pytest.mark.parametrize(
    ("method", "body", "length"), [("GET", None, None), ("DELETE", None, "0"), ("POST", None, "0"), ("PUT", b"", "0"), ("PUT", b"ab", "2")]
)
def test_every_request_except_a_get_states_the_length_of_its_body(method: str, body: bytes | None, length: str | None) -> None:
    with misbehaving_server(sequence(reply(200))) as server:
        session = OutboundSession(LOOPBACK, resolver=resolving("127.0.0.1"))
        for _ in range(2):  # The second request uses the same connection.
            assert fetch(session, f"http://scim.example.test:{server.port}/", method=method, body=body)[0] == 200
        assert [(seen.headers.get("content-length"), seen.body) for seen in server.received] == [(length, body or b"")] * 2


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "localhost.", "0", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::]"],  # noqa: S104  (nothing binds it)
)
def test_no_spelling_of_a_loopback_address_gets_a_request_by_default(host: str) -> None:
    with misbehaving_server(sequence(reply(200))) as server:
        with pytest.raises((AddressRefused, HostUnresolved, UrlRefused)):
            fetch(OutboundSession(OutboundRules(allow_http=True)), f"http://{host}:{server.port}/")
        assert server.received == []


def test_a_literal_ipv6_address_is_reached_if_its_network_is_allowed() -> None:
    rules = OutboundRules(private_networks=(ip_network("::1/128"),), allow_http=True)
    with pytest.raises(ConnectFailed):
        fetch(OutboundSession(rules), "http://[::1]:1/")


@pytest.mark.parametrize(
    "url", ["http://scim.example.test/", "ftp://scim.example.test/", "file:///etc/hostname", "//scim.example.test/", "scim"]
)
def test_only_https_urls_are_accepted_by_default(url: str) -> None:
    with pytest.raises(UrlRefused):
        fetch(OutboundSession(OutboundRules(), resolver=resolving("127.0.0.1")), url)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_returned_and_not_followed(status: int) -> None:
    with misbehaving_server(sequence(reply(status, raw=b"moved", headers={"Location": "/elsewhere"}))) as server:
        assert fetch(OutboundSession(LOOPBACK), f"http://127.0.0.1:{server.port}/", method="PUT", body=b"{}") == (status, b"moved")
        assert len(server.received) == 1


def endless(head: bytes) -> Misbehaviour:
    def act(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(b"x" * 65536)

    return Misbehaviour(act)


@pytest.mark.parametrize("status", [200, 302])
def test_an_endless_body_is_cut_off_at_one_mebibyte(status: int) -> None:
    head = f"HTTP/1.1 {status} Said\r\nLocation: /elsewhere\r\nContent-Length: 1000000000\r\n\r\n".encode()
    with misbehaving_server(sequence(endless(head))) as server, pytest.raises(AnswerTooLarge):
        fetch(OutboundSession(LOOPBACK), f"http://127.0.0.1:{server.port}/", seconds=10)


def test_a_body_of_exactly_one_mebibyte_is_read() -> None:
    with misbehaving_server(sequence(reply(200, raw=b"x" * MAX_BODY_BYTES), reply(200, raw=b"x" * (MAX_BODY_BYTES + 1)))) as server:
        session = OutboundSession(LOOPBACK)
        assert len(fetch(session, f"http://127.0.0.1:{server.port}/")[1]) == MAX_BODY_BYTES
        with pytest.raises(AnswerTooLarge):
            fetch(session, f"http://127.0.0.1:{server.port}/")


def test_the_size_limit_applies_to_the_decoded_body() -> None:
    bomb = gzip.compress(b"0" * (200 * 1024 * 1024))
    small = gzip.compress(b"hello")
    headers = {"Content-Encoding": "gzip"}
    with misbehaving_server(sequence(reply(200, raw=small, headers=headers), reply(200, raw=bomb, headers=headers))) as server:
        session = OutboundSession(LOOPBACK)
        assert fetch(session, f"http://127.0.0.1:{server.port}/") == (200, b"hello")
        with pytest.raises(AnswerTooLarge):
            fetch(session, f"http://127.0.0.1:{server.port}/", seconds=20)


def test_endless_headers_fail_at_the_deadline_or_a_limit() -> None:
    with misbehaving_server(sequence(endless(b"HTTP/1.1 200 Said\r\nX-Long: "))) as server, pytest.raises(OutboundError):
        fetch(OutboundSession(LOOPBACK), f"http://127.0.0.1:{server.port}/", seconds=5)


def test_a_connection_that_a_server_never_accepts_fails_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        with own_time() as fetching, pytest.raises((DeadlinePassed, ConnectFailed)):
            fetch(OutboundSession(LOOPBACK), f"http://127.0.0.1:{listener.getsockname()[1]}/", seconds=0.4)
        assert fetching.seconds < 1.5


def test_proxies_in_environment_variables_and_passwords_in_a_netrc_file_are_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login thief password stolen\n")
    for name, value in {"HTTP_PROXY": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1", "NETRC": str(tmp_path / "netrc")}.items():
        monkeypatch.setenv(name, value)
    with misbehaving_server(sequence(reply(200, raw=b"direct"))) as server:
        assert fetch(OutboundSession(LOOPBACK), f"http://127.0.0.1:{server.port}/") == (200, b"direct")
        assert server.received[0].headers["authorization"] == "Bearer t"


def test_no_cookie_is_sent_with_the_next_request() -> None:
    with misbehaving_server(sequence(reply(200, headers={"Set-Cookie": "session=of-another-tenant; Path=/"}))) as server:
        session = OutboundSession(LOOPBACK)
        for _ in range(2):
            fetch(session, f"http://127.0.0.1:{server.port}/")
        assert "cookie" not in server.received[1].headers


def test_a_name_without_an_address_fails_as_unresolved() -> None:
    with pytest.raises(HostUnresolved):
        resolve("no-such-host.invalid", 443, 5.0)


def test_a_hanging_resolver_fails_at_the_deadline() -> None:
    release = threading.Event()
    waiting = [dialing._resolver_threads().submit(release.wait, 10) for _ in range(8)]
    try:
        with own_time() as fetching, pytest.raises(HostUnresolved):
            fetch(OutboundSession(LOOPBACK), "http://localhost:1/", seconds=0.3)
    finally:
        release.set()
    assert fetching.seconds < 1
    assert all(task.result(timeout=5) for task in waiting)


def test_the_text_of_an_error_contains_no_part_of_the_request() -> None:
    with pytest.raises(ConnectFailed) as failed:
        fetch(OutboundSession(LOOPBACK), "http://127.0.0.1:1/Users?filter=anna%40example.test")
    assert "anna" not in str(failed.value)


def test_a_forked_child_process_has_a_separate_session() -> None:
    mine = outbound_session()
    assert outbound_session() is mine
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"same" if outbound_session() is mine else b"own")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"own"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ServerCertificate:
    return server_certificate(tmp_path_factory.mktemp("tls"))


@contextmanager
def tls_server(certificate: ServerCertificate, names: list[str | None]) -> Iterator[int]:
    """Answer 200 over TLS with a certificate for localhost, append each requested server name to `names`, and yield the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    context.sni_callback = lambda connection, name, context: names.append(name)

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                raw, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(raw, server_side=True) as connection:
                    connection.recv(65536)
                    connection.sendall(reply(200, raw=b"private"))
            except OSError:
                # A client that refuses the certificate ends the handshake.
                continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=5)


def test_the_tls_handshake_sends_and_verifies_the_host_name_instead_of_the_address(certificate: ServerCertificate) -> None:
    rules = OutboundRules(private_networks=LOOPBACK.private_networks, ca_file=str(certificate.authority))
    names: list[str | None] = []
    with tls_server(certificate, names) as port:
        session = OutboundSession(rules, resolver=resolving("127.0.0.1"))
        assert fetch(session, f"https://localhost:{port}/") == (200, b"private")
        with pytest.raises(TlsFailed):
            fetch(session, f"https://other.example.test:{port}/")
    assert names == ["localhost", "other.example.test"]


def test_a_certificate_of_an_unknown_authority_is_refused_before_the_token_is_sent(certificate: ServerCertificate) -> None:
    with tls_server(certificate, []) as port, pytest.raises(TlsFailed):
        fetch(OutboundSession(LOOPBACK, resolver=resolving("127.0.0.1")), f"https://localhost:{port}/")


@pytest.mark.parametrize(("said", "failure"), [(b"HTTP/1.1 400 Bad Request\r\n\r\n", TlsFailed), (b"", ConnectionLost)])
def test_an_answer_without_tls_is_distinguished_from_a_lost_connection(said: bytes, failure: type[OutboundError]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(failure):
            fetch(OutboundSession(LOOPBACK), f"https://127.0.0.1:{listener.getsockname()[1]}/")
        thread.join(timeout=5)
