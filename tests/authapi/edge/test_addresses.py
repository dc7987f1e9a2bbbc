"""Behind proxies: which IP address the service uses as the address of the client."""

from __future__ import annotations

import pytest

from authapi.accounts.brute_force import counted_address
from authapi.edge.addresses import AddressKey, client_address, compiled, customer_of, keys_of, origin_of, stored_address

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
        ("::ffff:10.0.0.1", "::ffff:198.51.100.9", "198.51.100.9"),
        ("::ffff:192.0.2.1", "198.51.100.9", "192.0.2.1"),
        ("10.0.0.1", "198.51.100.9:4711", "198.51.100.9"),
        ("10.0.0.1", "[2001:db8:9::9]:4711, 10.0.0.2:80", "2001:db8:9::9"),
        ("10.0.0.1", "198.51.100.9" + ", 10.0.0.2" * 5000, "10.0.0.2"),
    ],
)
def test_the_client_is_the_nearest_hop_that_is_not_a_trusted_proxy(peer: str, forwarded: str, expected: str) -> None:
    assert client_address(peer, forwarded, PROXIES) == expected


def test_a_unix_socket_is_a_trusted_peer_when_the_setting_lists_it() -> None:
    assert origin_of("", "198.51.100.9", ["unix:"]).address == "198.51.100.9"
    assert origin_of("", "198.51.100.9", ["unix:"]).keys == (AddressKey("198.51.100.9"),)
    # If the setting does not list the socket, all requests over the socket count as one peer. The IP addresses that these requests forward
    # are ignored.
    assert origin_of("", "198.51.100.9", []).keys == (AddressKey("unix:"),)
    assert not compiled(["10.0.0.0/8"]).has("")


def test_an_untrusted_peer_is_counted_by_its_own_address() -> None:
    assert origin_of("192.0.2.1", "198.51.100.9", PROXIES).keys == (AddressKey("192.0.2.1"),)


@pytest.mark.parametrize("forwarded", ["", "unknown", "10.0.0.2, unknown"])
def test_a_trusted_peer_that_forwards_no_address_is_not_counted(forwarded: str) -> None:
    assert origin_of("10.0.0.1", "" if forwarded == "" else forwarded, ["10.0.0.1"]).keys == ()


def test_the_key_of_an_invalid_address_has_a_bounded_length() -> None:
    assert len(origin_of("x" * 70_000, "", []).keys[0].name) <= 64


def test_networks_of_trusted_proxies_are_parsed_once() -> None:
    assert compiled(list(PROXIES)) is compiled(list(PROXIES))


def test_an_address_is_stored_without_port_and_zone() -> None:
    assert stored_address("198.51.100.9:4711") == "198.51.100.9"
    assert stored_address("fe80::1%eth0") == "fe80::1"
    assert stored_address("nonsense") is None


@pytest.mark.parametrize(("address", "customer"), [("2001:db8:1:2::3", "2001:db8:1:2::/64"), ("::ffff:192.0.2.1", "192.0.2.1"), ("", "")])
def test_the_first_key_of_an_address_is_its_ipv4_address_or_64_bit_ipv6_network(address: str, customer: str) -> None:
    assert customer_of(keys_of(address)) == customer
    assert counted_address(address) == customer


def test_ipv6_addresses_are_counted_by_their_networks() -> None:
    assert keys_of("2001:db8:1:2::3") == (AddressKey("2001:db8:1:2::/64"), AddressKey("2001:db8:1::/48", 16))
