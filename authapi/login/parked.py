"""Bytes of login transactions that one address may leave in the database, before any credential is checked.

Requests whose address a proxy hides share what the tenant has for all of them.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from authapi.edge.addresses import customer_keys
from authapi.edge.rate_figures import PARKED_BY_ADDRESS, PARKED_BY_BROWSER, PARKED_BY_HIDDEN
from authapi.edge.throttling import Rate
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from authapi.login.known_browser import known_browser
from authapi.login.login import Login

_UNIT_BYTES = 1024


class TooMuchParked(RequestRefused):
    """The address, or all hidden addresses together, have left as much as they may; the figures of `rate` are KiB.

    Told to the person, since the client can do nothing about it.
    """

    def __init__(self, rate: Rate) -> None:
        super().__init__(RequestCase.TOO_MANY_REQUESTS, rate=rate)


def require_room(login: Login) -> None:
    """Take the size of a request out of what its browser may leave, or else its address, or all hidden addresses together.

    Raises `TooMuchParked`.
    """
    if not settings.RATE_LIMITS_ENABLED:
        return
    tenant_id = login.host.tenant_id
    size = _length(login.request.state) // _UNIT_BYTES + 1
    browser = known_browser(tenant_id, login.http_request.headers.get("Cookie", ""))
    if browser is not None and PARKED_BY_BROWSER.takes(tenant_id, browser.name, count=size):
        return
    keys = customer_keys(login.address, settings.TRUSTED_PROXIES)
    payers = [(PARKED_BY_ADDRESS.times(key.factor), key.name) for key in keys] or [(PARKED_BY_HIDDEN, "")]
    for bucket, name in payers:
        if not bucket.takes(tenant_id, name, count=size):
            raise TooMuchParked(Rate.of_empty(bucket, count=size))


def _length(value: Any) -> int:
    """Return the characters of names and values, however deep."""
    if isinstance(value, dict):
        return sum(len(name) + _length(each) for name, each in value.items())
    return sum(map(_length, value)) if isinstance(value, list | tuple) else len(str(value))
