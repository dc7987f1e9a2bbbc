"""Key sets at a client's `jwks_uri`.

One request at a time fetches a set, the old set is used meanwhile, and only public keys are accepted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from authapi.client_auth import remote_keys as module
from authapi.client_auth.remote_keys import KeysUnavailable, RemoteKey, RemoteKeys, UnreadableKeys, fetched, read_keys
from tests.authapi.assertions import private_key
from tests.deadlines import eventually

ADDRESS = "https://client.example.test/keys"


def jwk(name: str = "first", **changes: Any) -> dict[str, Any]:
    found = RSAKey.import_key(private_key(name)).as_dict(private=False)
    return {"kty": "RSA", "n": found["n"], "e": found["e"], "kid": name, "use": "sig", "alg": "RS256", **changes}


def body(*keys: Any) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


class Publisher:
    """A client that publishes keys. Its answers can be slow or fail. `asked` is the number of requests that the client has received."""

    def __init__(self) -> None:
        self.keys = read_keys(body(jwk()))
        self.failure: Exception | None = None
        self.asked = 0
        self.gate = Event()
        self.gate.set()

    def __call__(self, tenant_id: str, address: str) -> tuple[RemoteKey, ...]:
        self.asked += 1
        assert self.gate.wait(20)
        if self.failure is not None:
            raise self.failure
        return self.keys


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def known(publisher: Publisher, clock: Clock) -> RemoteKeys:
    return RemoteKeys(publisher, clock=clock)


def ask(known: RemoteKeys, kid: str | None = "first", tenant: str = "t") -> list[str]:
    return [key.kid for key in known.get(tenant, ADDRESS, kid=kid, algorithm="RS256")]


def test_concurrent_requests_share_one_fetch(known: RemoteKeys, publisher: Publisher) -> None:
    publisher.gate.clear()
    with ThreadPoolExecutor(4) as callers:
        asked = [callers.submit(ask, known) for _ in range(4)]
        eventually(lambda: publisher.asked == 1)
        publisher.gate.set()
        assert [one.result(20) for one in asked] == [["first"]] * 4
    assert publisher.asked == 1


def test_an_outdated_set_is_used_during_its_refresh(known: RemoteKeys, publisher: Publisher, clock: Clock) -> None:
    assert ask(known) == ["first"]
    clock.now += 601
    publisher.gate.clear()
    assert ask(known) == ["first"]
    publisher.keys = read_keys(body(jwk("second")))
    publisher.gate.set()
    eventually(lambda: ask(known, "second") == ["second"])
    assert publisher.asked == 2


def test_keys_of_an_unavailable_url_stay_valid_for_a_day(known: RemoteKeys, publisher: Publisher, clock: Clock) -> None:
    assert ask(known) == ["first"]
    publisher.failure = UnreadableKeys()
    clock.now += 86_000
    assert ask(known) == ["first"]
    clock.now += 1000
    with pytest.raises(KeysUnavailable):
        ask(known)


def test_unknown_key_ids_and_failures_cause_at_most_one_request_in_half_a_minute(
    known: RemoteKeys, publisher: Publisher, clock: Clock
) -> None:
    publisher.failure = UnreadableKeys()
    for _ in range(5):
        with pytest.raises(KeysUnavailable):
            ask(known)
    assert publisher.asked == 1
    publisher.failure = None
    clock.now += 31
    assert ask(known) == ["first"]
    assert [ask(known, f"junk-{number}") for number in range(5)] == [[]] * 5
    assert publisher.asked == 2
    clock.now += 31
    assert ask(known, "junk") == []
    assert publisher.asked == 3


def test_only_a_few_requests_wait_for_a_slow_url(known: RemoteKeys, publisher: Publisher) -> None:
    publisher.gate.clear()
    with ThreadPoolExecutor(4) as callers:
        asked = [callers.submit(ask, known) for _ in range(4)]
        eventually(lambda: known._waiting._value == 0)
        with pytest.raises(KeysUnavailable):
            ask(known)
        publisher.gate.set()
        assert [one.result(20) for one in asked] == [["first"]] * 4


def test_two_tenants_have_separate_key_sets_for_the_same_url(known: RemoteKeys, publisher: Publisher) -> None:
    assert ask(known, tenant="a") == ask(known, tenant="b") == ["first"]
    assert publisher.asked == 2


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "EC", "crv": "P-256", "x": "x", "y": "y"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kty": "RSA", "n": 7, "e": "AQAB"},
        # With this large exponent, the verification of a signature would take a hundred times longer.
        {**jwk("second"), "e": "B" * 300},
        {"kty": "RSA", "n": "é" * 342, "e": "AQAB"},
        "text",
        None,
    ],
)
def test_an_unusable_key_is_ignored(key: Any) -> None:
    assert [one.kid for one in read_keys(body(key, jwk()))] == ["first"]


@pytest.mark.parametrize("changes", [{"use": "enc"}, {"alg": "HS256"}, {"alg": "none"}, {"d": "AQAB"}, {"kid": 7}])
def test_a_key_with_an_unsuitable_member_is_ignored(changes: dict[str, Any]) -> None:
    assert read_keys(body(jwk(**changes))) == ()


@pytest.mark.parametrize("sent", [b"", b"[]", b"{}", b'{"keys": {}}', b"<html>"])
def test_an_invalid_key_set_is_distinguished_from_an_empty_key_set(sent: bytes) -> None:
    with pytest.raises(UnreadableKeys):
        read_keys(sent)
    assert read_keys(body()) == ()


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = {"/keys": (200, body(jwk())), "/moved": (302, b""), "/long": (200, b" " * 70_000)}
            status, content = found.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Location", "/keys")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def test_a_key_set_is_fetched_over_http_and_redirects_are_not_followed(server: ThreadingHTTPServer) -> None:
    base = f"http://127.0.0.1:{server.server_port}"
    assert [key.kid for key in fetched("t", f"{base}/keys")] == ["first"]
    for path in ("/moved", "/long", "/nothing"):
        with pytest.raises(UnreadableKeys):
            fetched("t", base + path)


def test_an_address_in_a_private_network_is_refused(server: ThreadingHTTPServer, settings: Any) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    known = RemoteKeys(module.fetched)
    with pytest.raises(KeysUnavailable):
        known.get("t", f"http://127.0.0.1:{server.server_port}/keys", kid=None, algorithm="RS256")
