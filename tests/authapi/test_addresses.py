"""Whose address counts when proxies stand in between."""

from __future__ import annotations

import pytest

from authapi.addresses import client_address

PROXIES = ["10.0.0.0/8", "2001:db8::1"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("192.0.2.1", "", "192.0.2.1"),
        ("192.0.2.1", "198.51.100.9", "192.0.2.1"),
        ("10.0.0.1", "198.51.100.9", "198.51.100.9"),
        ("2001:db8::1", " 198.51.100.9 ", "198.51.100.9"),
        ("10.0.0.1", "6.6.6.6, 198.51.100.9, 10.0.0.2", "198.51.100.9"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "198.51.100.9, nonsense", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("", "198.51.100.9", ""),
    ],
)
def test_the_nearest_hop_that_is_no_proxy_of_ours_counts(peer: str, forwarded: str, expected: str) -> None:
    assert client_address(peer, forwarded, PROXIES) == expected
