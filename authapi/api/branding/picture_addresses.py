"""Addresses of uploaded pictures: paths in the database, whole addresses on the wire, so that a client can send back what it read."""

from __future__ import annotations

from urllib.parse import urlsplit

from rest_framework.request import Request

from authapi.looks.addresses import is_own_picture
from identity.hosts import address_beside, hosts_of, split_authority


def shown_address(request: Request, tenant_id: str, stored: str) -> str:
    """Return the address under which a browser finds a picture."""
    return f"{address_beside(request.get_host(), tenant_id)}{stored}" if is_own_picture(stored) else stored


def kept_address(tenant_id: str, sent: str | None) -> str | None:
    """Return an address as it is kept: the path alone for an uploaded picture of this tenant, by whichever of its hosts."""
    if not sent:
        return sent
    try:
        parts = urlsplit(sent)
        host, _ = split_authority(parts.netloc)
    except ValueError:
        # No address at all: the service says so.
        return sent
    return parts.path if is_own_picture(parts.path) and host in hosts_of(tenant_id) else sent
