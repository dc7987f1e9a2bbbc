"""The address a request comes from, as far as it can be believed. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection


def client_address(peer: str, forwarded_for: str, trusted_proxies: Collection[str]) -> str:
    """Return the nearest address that is not one of our proxies; `X-Forwarded-For` counts only behind those.

    `trusted_proxies` are addresses or networks. What cannot be read as an address ends the chain.
    """
    networks = [ipaddress.ip_network(proxy, strict=False) for proxy in trusted_proxies]
    address = peer
    for hop in reversed(forwarded_for.split(",")):
        if not _is_within(address, networks) or _parsed(hop) is None:
            break
        address = str(_parsed(hop))
    return address


def stored_address(address: str | None) -> str | None:
    """Return an address as a column of addresses takes it; None for what is none, and without the zone of a local one."""
    parsed = _parsed((address or "").partition("%")[0])
    return str(parsed) if parsed else None


def is_listed(address: str, allowed: Collection[str]) -> bool:
    """Tell whether an address is one of `allowed`, which are addresses and networks; what is neither allows nobody."""
    networks = []
    for entry in allowed:
        try:
            networks.append(ipaddress.ip_network(entry, strict=False))
        except ValueError:
            continue
    return _is_within(address, networks)


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address.strip())
    except ValueError:
        return None


def _is_within(address: str, networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    parsed = _parsed(address)
    return parsed is not None and any(parsed in network for network in networks)
