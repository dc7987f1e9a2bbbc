"""Bytes of waiting authorization requests that one address may leave in the database, before any credential is checked.

Requests whose address a proxy hides share what the tenant has for all of them.
"""

from __future__ import annotations

from django.conf import settings

from authapi.addresses import customer_keys
from authapi.authorize.known_browser import known_browser
from authapi.authorize.visit import Visit
from authapi.failures import Case, RequestRefused
from authapi.rate_figures import PARKED_BY_ADDRESS, PARKED_BY_BROWSER, PARKED_BY_HIDDEN

_UNIT_BYTES = 1024


class TooMuchParked(RequestRefused):
    """The address, or all hidden addresses together, have left as much as they may.

    Told to the person, since the client can do nothing about it.
    """

    def __init__(self) -> None:
        super().__init__(Case.TOO_MANY_REQUESTS)


def require_room(visit: Visit) -> None:
    """Take the size of a request out of what its browser may leave, or else its address, or all hidden addresses together.

    Raises `TooMuchParked`.
    """
    if not settings.RATE_LIMITS_ENABLED:
        return
    tenant_id = visit.host.tenant_id
    size = sum(len(name) + len(value) for name, value in visit.parameters.values.items()) // _UNIT_BYTES + 1
    browser = known_browser(tenant_id, visit.request.headers.get("Cookie", ""))
    if browser is not None and PARKED_BY_BROWSER.takes(tenant_id, browser.name, count=size):
        return
    keys = customer_keys(visit.address, settings.TRUSTED_PROXIES)
    if not keys:
        has_room = PARKED_BY_HIDDEN.takes(tenant_id, count=size)
    else:
        has_room = all(PARKED_BY_ADDRESS.times(key.factor).takes(tenant_id, key.name, count=size) for key in keys)
    if not has_room:
        raise TooMuchParked
