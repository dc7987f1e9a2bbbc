"""The address a request comes from, as far as it can be believed, and the keys under which its requests are counted. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# The entry of the trusted proxies that stands for every unix socket, as nginx writes it.
UNIX_SOCKETS = "unix:"
# More hops than any chain of proxies has; a header may hold thousands.
_MOST_HOPS = 32
_LONGEST_ADDRESS = 64
# An IPv6 customer has a /64 at least, and a site up to a /48 (RFC 6177).
_CUSTOMER_PREFIX, _SITE_PREFIX = 64, 48
_SITE_FACTOR = 16


@dataclass(frozen=True, slots=True)
class AddressKey:
    """A name under which requests are counted, and how many times the figure of one address it has."""

    name: str
    factor: int = 1

    def at(self, tenant_id: str) -> AddressKey:
        """Return the key of the same address at one tenant: what it does at another one does not count there."""
        return AddressKey(f"{tenant_id}/{self.name}", self.factor)


@dataclass(frozen=True, slots=True)
class Origin:
    """The address that a request comes from. `keys` is empty when a trusted proxy names no client."""

    address: str
    keys: tuple[AddressKey, ...]

    def keys_at(self, tenant_id: str) -> tuple[AddressKey, ...]:
        """Return the keys of the address at one tenant; the tenant of an unknown host is empty."""
        return tuple(key.at(tenant_id) for key in self.keys)


# Compared by identity, so that it can be the key of a cache for next to nothing.
@dataclass(frozen=True, slots=True, eq=False)
class Proxies:
    """The proxies whose forwarding headers are believed."""

    networks: tuple[Network, ...]
    has_unix_sockets: bool = False

    def has(self, peer: str) -> bool:
        """Tell whether a peer is one of them. A peer without an address arrived over a unix socket."""
        if not peer:
            return self.has_unix_sockets
        return bool(self.networks) and len(peer) <= _LONGEST_ADDRESS and _is_within(peer, self)


def compiled(proxies: Collection[str]) -> Proxies:
    """Return the proxies of a setting, compiled once. Raises `ValueError` for an entry that is no address and no network."""
    return _compiled(tuple(proxies))


def origin_of(peer: str, forwarded_for: str, trusted_proxies: Collection[str]) -> Origin:
    """Return the nearest address that is not one of our proxies, and its keys; `X-Forwarded-For` counts only behind those.

    An entry that is not an address ends the chain. The key of an untrusted peer is the peer; what it forwards is ignored.
    """
    proxies = compiled(trusted_proxies)
    if not proxies.has(peer):
        address = _written(peer) or peer[:_LONGEST_ADDRESS]
        return Origin(address, keys_of(address or UNIX_SOCKETS))
    address, is_named = _written(peer) or peer, False
    for hop in reversed(forwarded_for.rsplit(",", _MOST_HOPS)[-_MOST_HOPS:]):
        named = _written(hop)
        if named is None or not proxies.has(address):
            break
        address, is_named = named, True
    return Origin(address, keys_of(address) if is_named else ())


def customer_keys(address: str, trusted_proxies: Collection[str]) -> tuple[AddressKey, ...]:
    """Return the keys of an address that was found before; none for a proxy of ours, which hides who sent the request."""
    return () if compiled(trusted_proxies).has(address) else keys_of(address)


def client_address(peer: str, forwarded_for: str, trusted_proxies: Collection[str]) -> str:
    """Return the nearest address that is not one of our proxies; `X-Forwarded-For` counts only behind those.

    `trusted_proxies` are addresses, networks and `unix:`. What cannot be read as an address ends the chain.
    """
    return origin_of(peer, forwarded_for, trusted_proxies).address


@lru_cache(maxsize=4096)
def keys_of(address: str) -> tuple[AddressKey, ...]:
    """Return the keys of an address: itself for IPv4; for IPv6 its /64, and its /48 at 16 times the figure."""
    parsed = parsed_address(address)
    if parsed is None:
        return (AddressKey(address),) if address else ()
    if parsed.version == 4:
        return (AddressKey(str(parsed)),)
    customer, site = (str(ipaddress.ip_network((parsed, prefix), strict=False)) for prefix in (_CUSTOMER_PREFIX, _SITE_PREFIX))
    return (AddressKey(customer), AddressKey(site, _SITE_FACTOR))


def customer_of(keys: tuple[AddressKey, ...]) -> str:
    """Return the name of the first of an address's keys: an IPv4 address, or a /64 of IPv6. Empty without keys."""
    return keys[0].name if keys else ""


def stored_address(address: str | None) -> str | None:
    """Return an address as a column of addresses takes it; None for what is none, and without the zone of a local one."""
    return _written(address or "")


def is_listed(address: str, allowed: Collection[str]) -> bool:
    """Tell whether an address is one of `allowed`, which are addresses and networks; what is neither allows nobody."""
    parsed = parsed_address(address)
    return parsed is not None and any(parsed in network for network in _readable_networks(allowed))


def parsed_address(text: str) -> Address | None:
    """Read an address: a port and a zone are dropped, and `::ffff:192.0.2.1` is 192.0.2.1. None for what is none."""
    text = text.strip()
    if len(text) > _LONGEST_ADDRESS:
        return None
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address


@lru_cache(maxsize=64)
def _compiled(proxies: tuple[str, ...]) -> Proxies:
    networks = tuple(ipaddress.ip_network(proxy, strict=False) for proxy in proxies if proxy != UNIX_SOCKETS)
    return Proxies(networks, has_unix_sockets=UNIX_SOCKETS in proxies)


@lru_cache(maxsize=4096)
def _is_within(peer: str, proxies: Proxies) -> bool:
    parsed = parsed_address(peer)
    return parsed is not None and any(parsed in network for network in proxies.networks)


def _readable_networks(entries: Iterable[str]) -> Iterable[Network]:
    for entry in entries:
        try:
            yield ipaddress.ip_network(entry, strict=False)
        except ValueError:
            continue


@lru_cache(maxsize=4096)
def _text_of(text: str) -> str | None:
    parsed = parsed_address(text)
    return str(parsed) if parsed else None


def _written(text: str) -> str | None:
    # Longer texts are no addresses and must not fill the cache.
    return _text_of(text) if len(text) <= _LONGEST_ADDRESS else None
