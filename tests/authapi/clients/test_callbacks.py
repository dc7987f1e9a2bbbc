"""Tests which URLs match the registered callbacks. URLs of an attacker must not match."""

from __future__ import annotations

import pytest

from authapi.clients.callbacks import is_registered, matches_wildcard, wildcard_problem

PATTERN = "https://*.example.test/back"


@pytest.mark.parametrize("rest", ["", "/", "/more", "?x=1", "#x", "x", ".evil.test", "\n"])
def test_a_url_must_equal_a_registered_callback(rest: str) -> None:
    address = "https://shop.example.test/back"
    assert is_registered(address + rest, [address], takes_wildcards=True, is_native=True) == (rest == "")
    assert is_registered(address, [address + rest], takes_wildcards=True, is_native=True) == (rest == "")


@pytest.mark.parametrize("address", ["https://a.example.test/back", "https://pr-7.example.test/back", "https://0.example.test/back"])
def test_a_wildcard_matches_one_label(address: str) -> None:
    assert is_registered(address, [PATTERN], takes_wildcards=True, is_native=False)
    assert not is_registered(address, [PATTERN], takes_wildcards=False, is_native=False)


@pytest.mark.parametrize(
    "address",
    [
        PATTERN,
        "https://example.test/back",
        "https://.example.test/back",
        "https://a.b.example.test/back",
        "https://evil.test/.example.test/back",
        "https://evil.test?.example.test/back",
        "https://evil.test#.example.test/back",
        "https://evil.test\\.example.test/back",
        "https://evil.test@a.example.test/back",
        "https://a@b.example.test/back",
        "https://a:443.example.test/back",
        "https://-a.example.test/back",
        "https://a_b.example.test/back",
        "https://%61.example.test/back",
        "https://a.example.test/back/",
        "https://a.example.test/back?x=1",
        "https://a.example.test/back#x",
        "https://a.example.test/back\n",
        "https://a.example.test:444/back",
        "https://a.example.test.evil.test/back",
        "https://aXexample.test/back",
        "http://a.example.test/back",
        "javascript://a.example.test/back",
        "https://" + "a" * 64 + ".example.test/back",
        "",
    ],
)
def test_a_wildcard_matches_only_one_whole_label(address: str) -> None:
    assert not is_registered(address, [PATTERN], takes_wildcards=True, is_native=True)


@pytest.mark.parametrize(
    "pattern",
    [
        "http://*.example.test/back",
        "https://*/back",
        "https://*.test/back",
        "https://*.co.uk/back",
        "https://*.com.au/",
        "https://*.github.io/back",
        "https://*.0.0.1/back",
        "https://a.*.example.test/back",
        "https://a*.example.test/back",
        "https://*a.example.test/back",
        "https://*.*.example.test/back",
        "https://app.example.test/*",
        "https://*.example.test/*",
        "https://app.example.test/?next=*",
        "https://*.example.test@evil.test/back",
        "https://*.example.test\\@evil.test/back",
        "com.app:/*",
    ],
)
def test_an_unsafe_wildcard_is_refused_and_matches_no_url(pattern: str) -> None:
    assert wildcard_problem(pattern)
    for address in (pattern, pattern.replace("*", "evil"), pattern.replace("*.", "")):
        assert not matches_wildcard(address, pattern)
    assert not is_registered(pattern, [pattern], takes_wildcards=True, is_native=True)


@pytest.mark.parametrize("pattern", [PATTERN, "https://*.shop.co.uk/", "https://*.acme.github.io", "https://*.example.test:8443/a?b=c"])
def test_a_wildcard_below_a_registrable_domain_is_accepted(pattern: str) -> None:
    assert wildcard_problem(pattern) is None
    assert matches_wildcard(pattern.replace("*", "app"), pattern)


@pytest.mark.parametrize(
    ("address", "registered", "is_good"),
    [
        ("http://127.0.0.1:49152/cb", "http://127.0.0.1/cb", True),
        ("http://127.0.0.1/cb", "http://127.0.0.1:8000/cb", True),
        ("http://[::1]:49152/cb", "http://[::1]:1/cb", True),
        ("http://127.0.0.1:49152/other", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:49152/cb?x", "http://127.0.0.1/cb", False),
        ("http://[::1]:49152/cb", "http://127.0.0.1/cb", False),
        ("http://localhost:49152/cb", "http://localhost/cb", False),
        ("https://127.0.0.1:49152/cb", "https://127.0.0.1/cb", False),
        ("http://127.0.0.1.evil.test:80/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:80@evil.test/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:99999/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:0/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:/cb", "http://127.0.0.1/cb", False),
        ("http://192.0.2.1:49152/cb", "http://192.0.2.1/cb", False),
    ],
)
def test_a_native_client_may_use_any_port_of_its_loopback_address(address: str, registered: str, is_good: bool) -> None:
    assert is_registered(address, [registered], takes_wildcards=True, is_native=True) is is_good
    assert not is_registered(address, [registered], takes_wildcards=True, is_native=False)
