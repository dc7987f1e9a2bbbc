"""Streams over TLS: the client verifies certificates, and `events doctor` reports a certificate that will expire soon."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from config.launcher.tls import server_certificate
from events.client.credentials import FixedToken
from events.client.exchange import Deadlines, exchange
from events.client.failures import Untrusted
from events.client.server import Server, read_server
from events.client.subscription import Subscription, Wanted
from events.doctor.transport import examine_http2, judge_transport
from tests.events.client.misbehaving import misbehaving
from tests.events.client.test_subscription import DEADLINES, OPENING, events, frame, without_pauses


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Create an authority and a certificate for localhost. Return the certificate file of the authority."""
    return server_certificate(tmp_path).authority


def serving(authority: Path, *protocols: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.with_name("server.pem"), authority.with_name("server.key"))
    context.set_alpn_protocols(list(protocols))
    return context


def trusted(url: str, authority: Path) -> Server:
    return read_server(url, ca_file=str(authority))


def test_a_stream_is_read_over_verified_tls(authority: Path) -> None:
    with misbehaving(lambda _, wire: wire.stream(OPENING + frame(1)), tls=serving(authority)) as server:
        reader = Subscription(
            trusted(server.url, authority), FixedToken("a-token"), Wanted(), deadlines=DEADLINES, backoff=without_pauses()
        )
        assert events(reader, 1) == [b'{"number":1}']


@pytest.mark.parametrize("is_other_name", [True, False])
def test_no_token_is_sent_to_a_server_whose_certificate_cannot_be_verified(authority: Path, is_other_name: bool) -> None:
    with misbehaving(lambda _, wire: wire.stream(OPENING), tls=serving(authority)) as server:
        address = (
            read_server("https://id.example.com", connect_to=f"127.0.0.1:{server.port}", ca_file=str(authority))
            if is_other_name
            else read_server(server.url)
        )
        with pytest.raises(Untrusted, match="certificate"):
            events(Subscription(address, FixedToken("a-token"), Wanted(), deadlines=DEADLINES, backoff=without_pauses()), 1)
    assert server.requests == []


def test_the_doctor_reports_the_tls_version_and_warns_before_the_certificate_expires(authority: Path) -> None:
    with misbehaving(lambda _, wire: wire.stream(OPENING), tls=serving(authority)) as server:
        address = trusted(server.url, authority)
        with exchange(address, address.events_path, {}, deadlines=Deadlines(5.0, 5.0)) as stream:
            now = datetime.now(UTC)
            early, late = judge_transport(address, stream, now), judge_transport(address, stream, now + timedelta(days=385))
    assert (early.word, early.facts["version"]) == ("ok", "TLSv1.3")
    assert (late.word, late.advice) == ("warn", "Renew the certificate")


@pytest.mark.parametrize(("protocols", "words"), [(("h2", "http/1.1"), "offered; the checks"), (("http/1.1",), "not offered")])
def test_the_doctor_reports_whether_http_2_is_offered(authority: Path, protocols: tuple[str, ...], words: str) -> None:
    with misbehaving(lambda _, wire: wire.stream(OPENING), tls=serving(authority, *protocols)) as server:
        assert words in examine_http2(trusted(server.url, authority), 5.0).text
