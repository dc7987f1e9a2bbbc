"""DNS rebinding: a name resolves to a public address during the check, and to an internal address afterwards.

The connection is always opened to the address that was checked, for every spelling of the host.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator

import pytest

from foundation.outbound.addresses import parse_networks
from foundation.outbound.dialing import Resolver, resolve
from foundation.outbound.outcomes import (
    AddressRefused,
    ConnectFailed,
    DeadlinePassed,
    HostUnresolved,
    OutboundError,
    OutboundRules,
    UrlRefused,
)
from foundation.outbound.session import OutboundSession
from tests.factories.scim import MisbehavingServer, misbehaving_server, reply

# The rules of these tests allow this loopback address, so it stands for a public address. No server answers requests to it.
PUBLIC = "127.0.0.77"
RULES = OutboundRules(private_networks=parse_networks([f"{PUBLIC}/32"]), allow_http=True)


@pytest.fixture
def inside() -> Iterator[MisbehavingServer]:
    """Start a server that stands for a server of the internal network. It stores the requests that reach it."""
    with misbehaving_server(lambda _request: reply(200, {"secret": "internal"})) as server:
        yield server


def answering(*answers: list[str]) -> tuple[Resolver, list[str]]:
    """Return a resolver, and the list of the names that it is asked for. It returns `answers` in turn, and then repeats the last answer."""
    following, asked = itertools.chain(answers, itertools.repeat(answers[-1])), list[str]()

    def resolver(host: str, _port: int, _seconds: float) -> list[str]:
        asked.append(host)
        return next(following)

    return resolver, asked


def attempt(session: OutboundSession, url: str, *, seconds: float = 0.3) -> type[OutboundError]:
    with pytest.raises(OutboundError) as refusal:
        session.send("GET", url, headers={}, body=None, deadline=time.monotonic() + seconds)
    return refusal.type


def test_the_host_name_is_resolved_once_per_connection(inside: MisbehavingServer) -> None:
    # The classic rebinding attack: the first answer, for the check, is public. A second answer, for the connection, would be internal.
    resolver, asked = answering([PUBLIC], ["127.0.0.1"])
    assert attempt(OutboundSession(RULES, resolver=resolver), f"http://rebind.example.test:{inside.port}/") in (
        DeadlinePassed,
        ConnectFailed,
    )
    assert asked == ["rebind.example.test"]
    assert inside.received == []


def test_a_new_connection_is_checked_with_its_own_answer(inside: MisbehavingServer) -> None:
    resolver, _ = answering([PUBLIC], ["127.0.0.1"], ["::ffff:127.0.0.1"], ["2002:7f00:1::"], [PUBLIC, "127.0.0.1"], ["::1", PUBLIC])
    session = OutboundSession(RULES, resolver=resolver)
    url = f"http://rebind.example.test:{inside.port}/"
    assert attempt(session, url) in (DeadlinePassed, ConnectFailed)
    for _ in range(5):
        assert attempt(session, url) is AddressRefused
    assert inside.received == []


def test_a_request_is_checked_although_its_url_was_checked_before(inside: MisbehavingServer) -> None:
    resolver, _ = answering([PUBLIC], ["127.0.0.1"])
    session, url = OutboundSession(RULES, resolver=resolver), f"http://rebind.example.test:{inside.port}/"
    assert session.addresses(url, deadline=time.monotonic() + 1) == [PUBLIC]
    assert attempt(session, url) is AddressRefused
    with pytest.raises(AddressRefused):
        session.greet(url, deadline=time.monotonic() + 1)
    assert inside.received == []


def test_the_http_library_does_not_resolve_the_name_again(inside: MisbehavingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    # Only literal addresses may reach the system's resolver while the connection is opened.
    seen: list[str] = []
    original = socket.getaddrinfo

    def watched(host: str, *arguments: object, **options: object) -> object:
        seen.append(host)
        return original(host, *arguments, **options)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(socket, "getaddrinfo", watched)
    resolver, _ = answering(["127.0.0.1"])
    rules = OutboundRules(private_networks=parse_networks(["127.0.0.1/32"]), allow_http=True)
    url = f"http://inside.example.test:{inside.port}/"
    assert OutboundSession(rules, resolver=resolver).send("GET", url, headers={}, body=None, deadline=time.monotonic() + 5).status == 200
    assert set(seen) <= {"127.0.0.1"}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_an_internal_address_is_returned_as_a_response(inside: MisbehavingServer, status: int) -> None:
    target = f"http://localhost:{inside.port}/"
    resolver, asked = answering(["127.0.0.2"])
    rules = OutboundRules(private_networks=parse_networks(["127.0.0.2/32"]), allow_http=True)
    with misbehaving_server(lambda _request: reply(status, {}, headers={"Location": target, "Refresh": f"0; url={target}"})) as outside:
        relay = OutboundSession(
            rules, resolver=lambda host, port, seconds: ["127.0.0.1"] if host == "public.example.test" else resolver(host, port, seconds)
        )
        allowed = OutboundSession(OutboundRules(parse_networks(["127.0.0.1/32"]), allow_http=True), resolver=lambda *_: ["127.0.0.1"])
        answer = allowed.send("GET", f"http://public.example.test:{outside.port}/", headers={}, body=None, deadline=time.monotonic() + 5)
        assert attempt(relay, f"http://public.example.test:{outside.port}/") is AddressRefused
    assert answer.status == status
    assert asked == []
    assert inside.received == []


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
def test_a_proxy_in_the_environment_variables_is_ignored(inside: MisbehavingServer, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, f"http://127.0.0.1:{inside.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    resolver, _ = answering([PUBLIC])
    assert attempt(OutboundSession(RULES, resolver=resolver), f"http://public.example.test:{inside.port}/") in (
        DeadlinePassed,
        ConnectFailed,
    )
    assert inside.received == []


HOSTS = [
    "127.0.0.1.", "2130706433.", "017700000001", "0x7f.1", "0x7f000001", "127.000.000.001", "0177.0.0.1", "127.0x0.0.1", "127.0.1", "0",
    "LOCALHOST", "localhost.", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "LocalHost.", "x.localhost", "%6cocalhost",
    "\u2460\u2461\u2466.0.0.1", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "127.0.0.1%00", "localhost\u00ad",
    "u:p@127.0.0.1", "public.example.test@127.0.0.1", "public.example.test\\@127.0.0.1", "127.0.0.1#@public.example.test",
    "127.0.0.1\\.example.test",
    "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::ffff:0:7f00:1]", "[2002:7f00:1::]",
    "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[::1%25lo]", "[::1%lo]", "[fe80::1%25lo]", "[::1].", "[::1", "::1", "[x]", "[v1.x]", "",
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS, ids=ascii)
def test_no_spelling_of_an_internal_host_gets_a_request(inside: MisbehavingServer, host: str) -> None:
    session = OutboundSession(OutboundRules(allow_http=True))
    url = f"http://{host}:{inside.port}/"
    assert attempt(session, url, seconds=5) in (AddressRefused, HostUnresolved, UrlRefused, DeadlinePassed)
    for ask in (session.addresses, session.greet):
        with pytest.raises(OutboundError):
            ask(url, deadline=time.monotonic() + 5)
    assert inside.received == []


@pytest.mark.parametrize(
    "url", ["http://[x/", "http://a.test:99999/", "http://a.test:-1/", "http://a.test:x/", "http://a.test:\u0661/", "http:///x", "http://"]
)
def test_an_unparsable_url_is_refused_with_an_error_of_the_url_or_the_host(url: str) -> None:
    session = OutboundSession(OutboundRules(allow_http=True))
    assert attempt(session, url) in (UrlRefused, HostUnresolved, AddressRefused)
    for ask in (session.addresses, session.greet):
        with pytest.raises((UrlRefused, HostUnresolved, AddressRefused)):
            ask(url, deadline=time.monotonic() + 1)


def test_the_resolver_parses_numeric_addresses_as_a_connection_does() -> None:
    # The resolver must parse numeric addresses as a connection does. Otherwise, a connection to an unchecked address could be opened.
    assert {*resolve("2130706433", 80, 5), *resolve("0x7f.1", 80, 5), *resolve("0177.0.0.1", 80, 5)} == {"127.0.0.1"}
