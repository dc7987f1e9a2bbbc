"""Which addresses an outbound request may reach. Pure.

Public ones, and the private networks that the operator names. Forms of IPv6 that carry an IPv4 address are judged by
what they carry: a crafted AAAA record must not smuggle an internal address past the rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# RFC 6052, 2.1 and RFC 8215: the low 32 bits are an IPv4 address.
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read networks such as `10.0.0.0/8`; a single address is a network of one. Raises `ValueError`."""
    return tuple(ip_network(text, strict=False) for text in texts)


def is_allowed(text: str, private_networks: Iterable[Network]) -> bool:
    """Tell whether `text` is an address that may be dialled: public, or inside one of `private_networks`."""
    networks = tuple(private_networks)
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if _listed(address, networks):
        return True
    return all(_is_public(part) or _listed(part, networks) for part in _carried(address))


def _carried(address: Address) -> tuple[Address, ...]:
    """Return the IPv4 addresses inside an IPv6 one (mapped, compatible, 6to4, Teredo, NAT64), or the address itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.teredo is not None:
        return address.teredo
    embedded = address.ipv4_mapped or address.sixtofour
    if embedded is not None:
        return (embedded,)
    if any(address in network for network in _NAT64) or int(address) >> 32 == 0:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    return (address,)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address.is_site_local:
        # RFC 3879: no longer assigned, and so "global" to the library; networks that still use it use it inside.
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _listed(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
