from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.outbound.addresses import is_allowed, parse_networks

PRIVATE = [
    "127.0.0.1",
    "127.1.2.3",
    "0.0.0.0",  # noqa: S104  (nothing binds it)
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
]
PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "2a00:1450:4001:80b::200e"]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_internal_address_is_refused(address: str) -> None:
    assert not is_allowed(address, ())


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert is_allowed(address, ())


@pytest.mark.parametrize(
    "address",
    [
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::10.0.0.1",
        "2001:0:7f00:1::",
        str(ipaddress.IPv6Address(int(ipaddress.IPv6Address("2001:0:808:808::")) | (0xFFFFFFFF ^ int(ipaddress.IPv4Address("127.0.0.1"))))),
    ],
)
def test_an_internal_address_inside_an_ipv6_one_is_refused(address: str) -> None:
    assert not is_allowed(address, ())


def test_a_public_address_inside_an_ipv6_one_is_allowed() -> None:
    assert is_allowed("::ffff:8.8.8.8", ())
    assert is_allowed("64:ff9b::8.8.8.8", ())


def test_a_named_network_is_allowed_and_its_neighbours_are_not() -> None:
    networks = parse_networks(["10.1.0.0/16", "fd00:1::/32", "192.168.7.7"])
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00:1::5", "192.168.7.7"):
        assert is_allowed(address, networks)
    for address in ("10.2.0.1", "::ffff:10.2.0.1", "fd00:2::5", "192.168.7.8", "127.0.0.1"):
        assert not is_allowed(address, networks)


@given(st.ip_addresses(v=4))
def test_no_ipv6_form_of_an_address_is_judged_more_kindly_than_the_address(address: ipaddress.IPv4Address) -> None:
    if not is_allowed(str(address), ()):
        number = int(address)
        for form in (0xFFFF << 32 | number, 0x0064_FF9B << 96 | number, 0x2002 << 112 | number << 80):
            assert not is_allowed(str(ipaddress.IPv6Address(form)), ())


@given(st.text(max_size=20))
def test_what_is_no_address_is_refused(text: str) -> None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        assert not is_allowed(text, ())
