"""Determines the trusted IP address of the client of a request, and the keys under which the requests of this address are counted. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# In the list of trusted proxies, this entry means every unix socket. nginx uses the same notation.
UNIX_SOCKETS = "unix:"
# Maximum number of entries that are read from a forwarding header: more than any real chain has. A header may contain thousands of entries.
_MOST_HOPS = 32
_LONGEST_ADDRESS = 64
# A provider assigns an IPv6 customer at least a /64, and a site up to a /48 (RFC 6177).
_CUSTOMER_PREFIX, _SITE_PREFIX = 64, 48
_SITE_FACTOR = 16


@dataclass(frozen=True, slots=True)
class AddressKey:
    """A name under which requests are counted. The limit is `factor` times the limit of one IP address."""

    name: str
    factor: int = 1

    def at(self, tenant_id: str) -> AddressKey:
        """Return the key of the same IP address at one tenant, so that tenants have separate counts."""
        return AddressKey(f"{tenant_id}/{self.name}", self.factor)


@dataclass(frozen=True, slots=True)
class Origin:
    """The IP address of the client. `keys` is empty if the request comes from a trusted proxy that does not name the client."""

    address: str
    keys: tuple[AddressKey, ...]

    def keys_at(self, tenant_id: str) -> tuple[AddressKey, ...]:
        """Return the keys of the IP address at one tenant. For an unknown host, the tenant id is empty."""
        return tuple(key.at(tenant_id) for key in self.keys)


# Instances are compared by identity, so that they are cheap cache keys.
@dataclass(frozen=True, slots=True, eq=False)
class Proxies:
    """The proxies whose forwarding headers are trusted."""

    networks: tuple[Network, ...]
    has_unix_sockets: bool = False

    def has(self, peer: str) -> bool:
        """Tell whether a peer is a trusted proxy. A peer without an IP address is connected over a unix socket."""
        if not peer:
            return self.has_unix_sockets
        return bool(self.networks) and len(peer) <= _LONGEST_ADDRESS and _is_within(peer, self)


def compiled(proxies: Collection[str]) -> Proxies:
    """Return the compiled proxies of a setting, cached. Raises `ValueError` for an entry other than `unix:`, an IP address or a network."""
    return _compiled(tuple(proxies))


def origin_of(peer: str, forwarded_for: str, trusted_proxies: Collection[str]) -> Origin:
    """Return the nearest IP address that is not a trusted proxy, with its keys. `X-Forwarded-For` is used only behind trusted proxies.

    An entry of the header that is not an address ends the chain. If the peer is not a trusted proxy, its header is ignored, and the key is
    the address of the peer.
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
    """Return the keys of the known IP address of a client. Empty for a trusted proxy, which hides the client."""
    return () if compiled(trusted_proxies).has(address) else keys_of(address)


def client_address(peer: str, forwarded_for: str, trusted_proxies: Collection[str]) -> str:
    """Return the nearest IP address that is not a trusted proxy. `X-Forwarded-For` is used only behind trusted proxies.

    `trusted_proxies` contains IP addresses, networks and `unix:`. An entry of the header that is not an address ends the chain.
    """
    return origin_of(peer, forwarded_for, trusted_proxies).address


@lru_cache(maxsize=4096)
def keys_of(address: str) -> tuple[AddressKey, ...]:
    """Return the keys of an IP address. An IPv4 address has one key: itself. An IPv6 address has two: its /64, and its /48 with 16 times
    the limit."""
    parsed = parsed_address(address)
    if parsed is None:
        return (AddressKey(address),) if address else ()
    if parsed.version == 4:
        return (AddressKey(str(parsed)),)
    customer, site = (str(ipaddress.ip_network((parsed, prefix), strict=False)) for prefix in (_CUSTOMER_PREFIX, _SITE_PREFIX))
    return (AddressKey(customer), AddressKey(site, _SITE_FACTOR))


def customer_of(keys: tuple[AddressKey, ...]) -> str:
    """Return the name of the first key of an IP address: an IPv4 address or an IPv6 /64. Empty without keys."""
    return keys[0].name if keys else ""


def stored_address(address: str | None) -> str | None:
    """Return an IP address as a database column stores it, without the zone of a link-local address. None for an invalid IP address."""
    return _written(address or "")


def is_listed(address: str, allowed: Collection[str]) -> bool:
    """Tell whether an IP address is in `allowed`, a list of IP addresses and networks. Invalid entries match nothing."""
    parsed = parsed_address(address)
    return parsed is not None and any(parsed in network for network in _readable_networks(allowed))


def parsed_address(text: str) -> Address | None:
    """Parse an IP address. Drops port and zone, and maps `::ffff:192.0.2.1` to 192.0.2.1. None for an invalid IP address."""
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
    # Longer texts are not IP addresses and must not fill the cache.
    return _text_of(text) if len(text) <= _LONGEST_ADDRESS else None
