"""Admission of requests without a credential: pages, published keys, sign-ups, requests for mails.

A browser that has completed a login spends its own figure first, then the address its own, and last the anonymous callers of
the tenant theirs. So a tenant under a flood still serves every browser and every address that stays within its own.
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
    """Too many requests of an address, and of the anonymous callers of its tenant."""

    def __init__(self, rate: Rate) -> None:
        super().__init__(self.__doc__)
        self.rate = rate


def admitted_stranger(tenant_id: str, origin: Origin, browser: AddressKey | None = None) -> Rate:
    """Charge one request and return the rate of the bucket that paid; may ask Redis. Raises `StrangerRefused`."""
    for counts, keys in _own(tenant_id, origin, browser):
        rate = counts.count(keys)
        if rate is not None and not rate.is_exceeded:
            return rate
    return _allowed(throttling.hit(tenant_id, ANONYMOUS))


async def admitted_stranger_async(tenant_id: str, origin: Origin, browser: AddressKey | None = None) -> Rate:
    """Do what `admitted_stranger` does, on the event loop when this process decides alone."""
    for counts, keys in _own(tenant_id, origin, browser):
        rate = await counts.count_async(keys)
        if rate is not None and not rate.is_exceeded:
            return rate
    return _allowed(await throttling.hit_async(tenant_id, ANONYMOUS))


def _own(tenant_id: str, origin: Origin, browser: AddressKey | None) -> Iterator[tuple[AddressRates, _Keys]]:
    """Yield what may pay before the tenant does and has something left."""
    found: list[tuple[AddressRates, _Keys]] = [(browsers, (browser.at(tenant_id),))] if browser is not None else []
    found.append((visits, origin.keys_at(tenant_id)))
    return ((counts, keys) for counts, keys in found if keys and not counts.is_over(keys))


def _allowed(rate: Rate) -> Rate:
    if rate.is_exceeded:
        raise StrangerRefused(rate)
    return rate
