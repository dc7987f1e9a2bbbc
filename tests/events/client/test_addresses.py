"""Parsing of service URLs and of times that operators type."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from events.client.credentials import require_private
from events.client.failures import Untrusted
from events.client.moments import InvalidMoment, wire_moment
from events.client.server import InvalidAddress, Server, read_server
from events.stream.request import parse_moment

NOW = datetime(2026, 5, 1, 12, 0, 0, 999, tzinfo=UTC)


def is_private(server: Server, *, allow_http: bool = False) -> bool:
    try:
        require_private(server, allow_http=allow_http)
    except Untrusted:
        return False
    return True


@pytest.mark.parametrize(
    ("url", "events_url", "audience"),
    [
        ("https://id.example.com", "https://id.example.com/api/v2/events", "https://id.example.com/api/v2/"),
        ("id.example.com", "https://id.example.com/api/v2/events", "https://id.example.com/api/v2/"),
        ("https://id.example.com/api/v2/", "https://id.example.com/api/v2/events", "https://id.example.com/api/v2/"),
        ("https://id.example.com:443/api/v2/events", "https://id.example.com/api/v2/events", "https://id.example.com/api/v2/"),
        ("http://localhost:8000/events", "http://localhost:8000/api/v2/events", "http://localhost:8000/api/v2/"),
        ("http://[::1]:8000/x/events", "http://[::1]:8000/x/events", "http://[::1]:8000/x/"),
    ],
)
def test_a_url_may_end_at_the_host_the_base_path_or_the_stream(url: str, events_url: str, audience: str) -> None:
    server = read_server(url)
    assert (server.events_url, server.audience) == (events_url, audience)


@pytest.mark.parametrize(
    "url", ["ftp://a.example", "https://", "https://user:pass@a.example", "https://a.example/?from=x", "https://a.example:x", "http://a b/"]
)
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidAddress):
        read_server(url)


def test_the_option_connect_to_does_not_change_the_public_host_name() -> None:
    server = read_server("https://id.example.com", connect_to="10.0.0.7:8000")
    assert (server.address, server.authority) == (("10.0.0.7", 8000), "id.example.com")
    assert read_server("https://id.example.com", connect_to="10.0.0.7").address == ("10.0.0.7", 443)


@pytest.mark.parametrize(
    "url", ["http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1", "http://demo.localhost", "https://a.example"]
)
def test_tokens_are_sent_over_tls_or_to_loopback(url: str) -> None:
    assert is_private(read_server(url))


@pytest.mark.parametrize("url", ["http://a.example", "http://10.0.0.7", "http://localhost.a.example"])
def test_tokens_are_sent_unencrypted_over_a_network_only_with_allow_http(url: str) -> None:
    assert not is_private(read_server(url))
    assert is_private(read_server(url), allow_http=True)
    assert is_private(read_server(url, connect_to="127.0.0.1:80"))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", "2026-05-01T11:58:30Z"),
        ("10m", "2026-05-01T11:50:00Z"),
        ("2h", "2026-05-01T10:00:00Z"),
        ("7d", "2026-04-24T12:00:00Z"),
        ("2026-04-30T23:59:59z", "2026-04-30T23:59:59Z"),
        ("2026-05-01T01:30:00+02:00", "2026-04-30T23:30:00Z"),
        ("2026-05-01T01:30:00.999Z", "2026-05-01T01:30:00Z"),
    ],
)
def test_the_start_of_a_stream_is_read_as_an_age_or_as_a_time(text: str, moment: str) -> None:
    assert wire_moment(text, NOW) == moment
    parse_moment(moment)


@pytest.mark.parametrize("text", ["", "10", "10w", "yesterday", "2026-05-01T12:00:00", "999999999d", "2026-13-01T00:00:00Z"])
def test_an_invalid_time_is_refused_with_the_accepted_forms(text: str) -> None:
    with pytest.raises(InvalidMoment):
        wire_moment(text, NOW)
