"""Rate limits for requests without a credential: pages, published keys, sign-ups, requests for mails.

A request is charged to the first of these limits that is not used up: 1. the limit of the browser, if the browser has completed a login; 2.
the limit of the IP address; 3. the limit of all anonymous callers of the tenant together. During a flood, the tenant therefore still serves
every browser and every IP address that has not reached its own limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from authapi.edge import throttling
from authapi.edge.address_rates import AddressRates, browsers, visits
from authapi.edge.addresses import AddressKey, Origin
from authapi.edge.rate_figures import ANONYMOUS
from authapi.edge.throttling import Rate

_Keys = tuple[AddressKey, ...]


class StrangerRefused(Exception):
    """Too many requests from this IP address, and from all anonymous callers of the tenant together."""

    def __init__(self, rate: Rate) -> None:
        super().__init__(self.__doc__)
        self.rate = rate


def admitted_stranger(tenant_id: str, origin: Origin, browser: AddressKey | None = None) -> Rate:
    """Charge one request and return the rate of the limit to which it was charged. May call Redis. Raises `StrangerRefused`."""
    for counts, keys in _own(tenant_id, origin, browser):
        rate = counts.count(keys)
        if rate is not None and not rate.is_exceeded:
            return rate
    return _allowed(throttling.hit(tenant_id, ANONYMOUS))


async def admitted_stranger_async(tenant_id: str, origin: Origin, browser: AddressKey | None = None) -> Rate:
    """Like `admitted_stranger`, but without blocking the event loop."""
    for counts, keys in _own(tenant_id, origin, browser):
        rate = await counts.count_async(keys)
        if rate is not None and not rate.is_exceeded:
            return rate
    return _allowed(await throttling.hit_async(tenant_id, ANONYMOUS))


def _own(tenant_id: str, origin: Origin, browser: AddressKey | None) -> Iterator[tuple[AddressRates, _Keys]]:
    """Yield the limits of the browser and of the IP address, in this order. Skip a limit that has no requests left."""
    found: list[tuple[AddressRates, _Keys]] = [(browsers, (browser.at(tenant_id),))] if browser is not None else []
    found.append((visits, origin.keys_at(tenant_id)))
    return ((counts, keys) for counts, keys in found if keys and not counts.is_over(keys))


def _allowed(rate: Rate) -> Rate:
    if rate.is_exceeded:
        raise StrangerRefused(rate)
    return rate
