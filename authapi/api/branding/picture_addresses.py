"""Converts URLs of uploaded pictures: the database contains a path, API responses contain a full URL. Clients may send either form."""

from __future__ import annotations

from urllib.parse import urlsplit

from rest_framework.request import Request

from authapi.looks.addresses import is_own_picture
from identity.hosts import address_beside, hosts_of, split_authority


def shown_address(request: Request, tenant_id: str, stored: str) -> str:
    """Return the full URL of a picture for browsers."""
    return f"{address_beside(request.get_host(), tenant_id)}{stored}" if is_own_picture(stored) else stored


def kept_address(tenant_id: str, sent: str | None) -> str | None:
    """Return a URL in its stored form: the path if the URL is that of a picture of this tenant, otherwise the URL as sent."""
    if not sent:
        return sent
    try:
        parts = urlsplit(sent)
        host, _ = split_authority(parts.netloc)
    except ValueError:
        # The value is not a URL. `services.branding` reports the error.
        return sent
    return parts.path if is_own_picture(parts.path) and host in hosts_of(tenant_id) else sent
