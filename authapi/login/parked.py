"""Limits the bytes of login transactions that one IP address may store in the database before any credential is checked.

Requests whose IP address is hidden by a proxy share one limit of the tenant.
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
    """The limit of the IP address, or of all hidden IP addresses together, is used up. The numbers in `rate` are in KiB.

    The error is shown to the user, because the client cannot change the limit.
    """

    def __init__(self, rate: Rate) -> None:
        super().__init__(RequestCase.TOO_MANY_REQUESTS, rate=rate)


def require_room(login: Login) -> None:
    """Charge the size of a request to the rate limit of its sender.

    A known browser is charged to its own limit. If that limit is used up, or the browser is unknown, the limit of the IP address is
    charged. All requests with hidden IP addresses share one limit.

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
    """Return the number of characters in all nested names and values."""
    if isinstance(value, dict):
        return sum(len(name) + _length(each) for name, each in value.items())
    return sum(map(_length, value)) if isinstance(value, list | tuple) else len(str(value))
