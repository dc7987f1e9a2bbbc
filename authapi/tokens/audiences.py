"""The URLs in tokens that name a tenant: its issuers, and the audiences of the management interface, of `/userinfo` and of `/mfa/`."""

from __future__ import annotations

from urllib.parse import urlsplit

from authapi.tokens.claims import MANAGEMENT_PATH
from identity.hosts import scheme


def is_issuer(address: str, hosts: frozenset[str]) -> bool:
    """Tell whether `address` is an issuer of the tenant that owns `hosts`. Any port is accepted, because ports are not registered."""
    return _names(address, hosts, path="/")


def is_management_audience(address: str, hosts: frozenset[str]) -> bool:
    """Tell whether `address` is the audience of the management interface on any host of the tenant."""
    return _names(address, hosts, path="/" + MANAGEMENT_PATH)


def is_userinfo_audience(address: str, hosts: frozenset[str]) -> bool:
    """Tell whether `address` is the audience of `/userinfo` on any host of the tenant."""
    return _names(address, hosts, path="/userinfo")


def is_factors_audience(address: str, hosts: frozenset[str]) -> bool:
    """Tell whether `address` is the audience of the interface for second factors on any host of the tenant."""
    return _names(address, hosts, path="/mfa/")


def _names(address: str, hosts: frozenset[str], *, path: str) -> bool:
    if not address.startswith(f"{scheme()}://") or not address.endswith(path):
        return False
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return False
    if parts.username is not None or parts.query or parts.fragment or parts.path != path:
        return False
    return parts.hostname in hosts
