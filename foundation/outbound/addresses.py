"""The IP addresses that an outbound request may reach. Pure.

An address is allowed if it is public, or if it is in a private network that the operator allows. For an IPv6 address that embeds an IPv4
address, the embedded address decides: a crafted AAAA record must not reach an internal address.

The ranges are copied from IANA's registries of special-purpose addresses (RFC 6890), as of 2025. Python's `is_global` follows
a different edition in each patch release, and in some releases it allows 192.0.0.192 or 2001:4:112::1. Special-purpose
ranges that the registries call globally reachable, such as anycast relays, are refused as well: no destination has such an address.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_SPECIAL_IPV4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # "this network" (RFC 791)
        "10.0.0.0/8",  # private use (RFC 1918)
        "100.64.0.0/10",  # shared address space (RFC 6598)
        "127.0.0.0/8",  # loopback (RFC 1122)
        "169.254.0.0/16",  # link local (RFC 3927), with the metadata services of clouds
        "172.16.0.0/12",  # private use (RFC 1918)
        "192.0.0.0/24",  # IETF protocol assignments (RFC 6890); a cloud's metadata service answers on 192.0.0.192
        "192.0.2.0/24",  # documentation (RFC 5737)
        "192.31.196.0/24",  # AS112 (RFC 7535)
        "192.52.193.0/24",  # AMT (RFC 7450)
        "192.88.99.0/24",  # relays of 6to4, deprecated (RFC 7526)
        "192.168.0.0/16",  # private use (RFC 1918)
        "192.175.48.0/24",  # AS112 (RFC 7534)
        "198.18.0.0/15",  # benchmarks (RFC 2544)
        "198.51.100.0/24",  # documentation (RFC 5737)
        "203.0.113.0/24",  # documentation (RFC 5737)
        "224.0.0.0/4",  # multicast (RFC 5771)
        "240.0.0.0/4",  # reserved (RFC 1112), with the limited broadcast 255.255.255.255
    )
)
# The only range assigned to global unicast (IANA, Internet Protocol Version 6 Address Space). It excludes loopback, the
# unspecified address, discard-only 100::/64, SRv6 5f00::/16, unique local fc00::/7, link local, site local and multicast.
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_SPECIAL_IPV6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # IETF protocol assignments (RFC 2928): Teredo, benchmarks, ORCHID, drone remote ids, AS112
        "2001:db8::/32",  # documentation (RFC 3849)
        "2002::/16",  # 6to4 (RFC 3056)
        "2620:4f:8000::/48",  # AS112 (RFC 7534)
        "3fff::/20",  # documentation (RFC 9637)
    )
)
# Prefixes of 96 bits before an IPv4 address: compatible and mapped (RFC 4291, 2.5.5), translated (RFC 2765, 2.1), and the
# well-known prefix of NAT64 (RFC 6052, 2.1). The operator of a local NAT64 prefix (RFC 8215) chooses where the address is
# embedded, so 64:ff9b:1::/48 is refused like every other range outside global unicast.
_BEFORE_IPV4 = tuple(IPv6Network(text) for text in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
_TEREDO = IPv6Network("2001::/32")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_LOW_32_BITS = 0xFFFF_FFFF


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse networks such as `10.0.0.0/8`; a single address is a network of one address. Raises `ValueError`."""
    return tuple(ip_network(text, strict=False) for text in texts)


def is_allowed(text: str, private_networks: Iterable[Network]) -> bool:
    """Tell whether `text` is an allowed address: public, or inside one of `private_networks`."""
    networks = tuple(private_networks)
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if _listed(address, networks):
        return True
    return all(_is_public(part) or _listed(part, networks) for part in _carried(address))


def _carried(address: Address) -> tuple[Address, ...]:
    """Return the IPv4 addresses inside an IPv6 address (mapped, compatible, translated, 6to4, Teredo, NAT64), else the address itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    number = int(address)
    if address in _TEREDO:
        # RFC 4380, 4: the server, and the client with its bits inverted.
        return (IPv4Address(number >> 64 & _LOW_32_BITS), IPv4Address(~number & _LOW_32_BITS))
    if address in _SIX_TO_FOUR:
        return (IPv4Address(number >> 80 & _LOW_32_BITS),)
    if any(address in network for network in _BEFORE_IPV4):
        return (IPv4Address(number & _LOW_32_BITS),)
    return (address,)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_IPV6)


def _listed(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
