from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.outbound.addresses import is_allowed, parse_networks

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
def test_an_internal_address_embedded_in_an_ipv6_address_is_refused(address: str) -> None:
    assert not is_allowed(address, ())


def test_a_public_address_embedded_in_an_ipv6_address_is_allowed() -> None:
    assert is_allowed("::ffff:8.8.8.8", ())
    assert is_allowed("64:ff9b::8.8.8.8", ())


def test_a_listed_network_is_allowed_and_adjacent_networks_are_not() -> None:
    networks = parse_networks(["10.1.0.0/16", "fd00:1::/32", "192.168.7.7"])
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00:1::5", "192.168.7.7"):
        assert is_allowed(address, networks)
    for address in ("10.2.0.1", "::ffff:10.2.0.1", "fd00:2::5", "192.168.7.8", "127.0.0.1"):
        assert not is_allowed(address, networks)


# The ranges of the two IANA registries for special-purpose addresses (IPv4 and IPv6), and the multicast and site-local ranges.
SPECIAL = """
0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29 192.0.0.8/32 192.0.0.9/32
192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.0.192/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16
192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32
::/128 ::1/128 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32
2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28 2001:db8::/32 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10
ff00::/8
"""
NEIGHBORS = """
1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255
172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.31.195.255 192.52.194.0 192.88.98.255 192.167.255.255 192.169.0.0 192.175.49.0
198.17.255.255 198.20.0.0 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 2001:200:: 2001:db7:ffff:: 2001:db9:: 2003:: 2620:4f:8001::
2620:4f:7fff:: 3ffe:: 2000::1
"""


@pytest.mark.parametrize("network", SPECIAL.split())
def test_every_special_purpose_range_is_refused_including_its_first_and_last_address(network: str) -> None:
    first, last = ipaddress.ip_network(network)[0], ipaddress.ip_network(network)[-1]
    assert not is_allowed(str(first), ())
    assert not is_allowed(str(last), ())


@pytest.mark.parametrize("address", NEIGHBORS.split())
def test_the_address_next_to_a_special_purpose_range_is_allowed(address: str) -> None:
    assert is_allowed(address, ())


@pytest.mark.parametrize("address", ["192.0.0.192", "10.0.0.1", "::1", "::ffff:169.254.169.254", "2001:4:112::1", "fec0::1", "fd00::1"])
def test_the_address_tables_of_python_do_not_decide_whether_an_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Patch releases of Python differ in the ranges that they call global. The test assumes the worst case: every range is global.
    for kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
        monkeypatch.setattr(kind, "is_global", property(lambda _address: True))
        for name in ("is_private", "is_reserved", "is_multicast", "is_unspecified", "is_loopback", "is_link_local"):
            monkeypatch.setattr(kind, name, property(lambda _address: False))
    assert not is_allowed(address, ())


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("::ffff:0:169.254.169.254", False),  # An IPv4-translated address (RFC 2765) contains an IPv4 address.
        ("::ffff:0:8.8.8.8", True),
        ("64:ff9b:1::8.8.8.8", False),  # Refused, because only the local network knows which bits are the IPv4 address.
        ("64:ff9b:1:a00:1::", False),
        ("2002:808:808::1", True),
        ("2002:c000:c0::1", False),
        ("2001:0:808:808::f7f7:f7f7", True),
        ("2001:0:c000:c0::f7f7:f7f7", False),  # The address of the Teredo server is internal.
        ("64:ff9b::192.0.0.192", False),
        ("::ffff:192.0.0.192%eth0", False),
    ],
)
def test_an_ipv6_address_is_allowed_only_if_every_embedded_address_is_allowed(address: str, *, allowed: bool) -> None:
    assert is_allowed(address, ()) is allowed


@given(st.ip_addresses(v=4))
def test_no_ipv6_notation_of_a_refused_address_is_allowed(address: ipaddress.IPv4Address) -> None:
    if not is_allowed(str(address), ()):
        number = int(address)
        teredo = 0x2001_0000 << 96 | 0x0808_0808 << 64 | number ^ 0xFFFF_FFFF
        for form in (
            number,
            0xFFFF << 32 | number,
            0xFFFF << 48 | number,
            0x0064_FF9B << 96 | number,
            0x2002 << 112 | number << 80,
            teredo,
        ):
            assert not is_allowed(str(ipaddress.IPv6Address(form)), ())


@given(st.text(max_size=20))
def test_an_invalid_address_is_refused(text: str) -> None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        assert not is_allowed(text, ())
