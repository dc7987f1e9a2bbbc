"""Counts requests per IP address: refused requests as debt, anonymous requests as visits. The counts use constant memory. Unlike
`rate_leases`, this module reserves no requests in advance.

Counts are in approximate counters of fixed size in this process (`foundation.memory.sketch`). Redis adds up the counts of all processes,
but only for IP addresses that have used more than an eighth of their limit. So a flood in which each of many IP addresses sends few
requests causes no traffic to Redis. While Redis is unavailable, each process uses its own counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.conf import settings

from authapi.edge.addresses import AddressKey, Origin
from authapi.edge.indebted import note_refusal
from authapi.edge.rate_figures import Figure, browser_figure, debt_figure, visit_figure
from authapi.edge.throttling import Rate, Window, counters
from foundation.memory import executor
from foundation.memory.sketch import Sketch

# Redis counts an IP address only above this fraction (1/8) of the limit.
_SHARED_FROM = 8


class AddressRates:
    """The counts of one kind of request. If `is_switchable` is true, `RATE_LIMITS_ENABLED=0` switches these counts off."""

    def __init__(self, name: str, figure: Callable[[], Figure], *, is_switchable: bool) -> None:
        self._name = name
        self._figure = figure
        self._is_switchable = is_switchable
        self._sketches: dict[int, Sketch] = {}

    def look(self, keys: tuple[AddressKey, ...]) -> Rate | None:
        """Return the remaining rate according to the counts of this process, or None without keys. Does not count a request."""
        return self._decided([self._window(key).rate(self._sketch().read(key.name)) for key in keys])

    def is_over(self, keys: tuple[AddressKey, ...]) -> bool:
        """Tell whether the next request would exceed the limit."""
        rate = self.look(keys)
        return rate is not None and rate.remaining == 0 and self._is_on()

    def count(self, keys: tuple[AddressKey, ...]) -> Rate | None:
        """Count a request and return the remaining rate, or None without keys. May call Redis, for at most 200 ms."""
        return self._decided([self._count_one(key) for key in keys]) if self._is_on() else self.look(keys)

    async def count_async(self, keys: tuple[AddressKey, ...]) -> Rate | None:
        """Like `count`: runs directly if the count needs no call to Redis, otherwise in a thread."""
        if not self._is_on() or not any(self._is_shared(key) for key in keys):
            return self.count(keys)
        return await executor.run(partial(self.count, keys))

    def clear(self) -> None:
        """Reset every count of this process."""
        self._sketches.clear()

    def _count_one(self, key: AddressKey) -> Rate:
        window, sketch = self._window(key), self._sketch()
        # One atomic step: otherwise two threads that read the same count would both add it to Redis.
        count = sketch.add(key.name)
        before = count - 1
        # If this process knows that the limit of the key is used up, it does not call Redis until the next window. In a flood
        # from one IP address, at most as many requests call Redis as the limit allows.
        if count * _SHARED_FROM <= window.limit or before > window.limit:
            return window.rate(count)
        amount = count if before * _SHARED_FROM <= window.limit else 1
        shared = counters().increase_or(
            f"{self._name}/{key.name}/{window.number}", seconds=window.seconds + 1, amount=amount, otherwise=count
        )
        return window.rate(sketch.raise_to(key.name, shared))

    def _is_shared(self, key: AddressKey) -> bool:
        count, limit = self._sketch().read(key.name), self._window(key).limit
        return count <= limit and (count + 1) * _SHARED_FROM > limit

    def _window(self, key: AddressKey) -> Window:
        return Window.now(self._figure(), factor=key.factor)

    def _sketch(self) -> Sketch:
        seconds = self._figure().seconds
        sketch = self._sketches.get(seconds)
        if sketch is None:
            # Only one window length is in use at a time. A new length means that the setting has changed.
            self._sketches.clear()
            sketch = self._sketches[seconds] = Sketch(seconds)
        return sketch

    def _is_on(self) -> bool:
        return not self._is_switchable or bool(settings.RATE_LIMITS_ENABLED)

    @staticmethod
    def _decided(rates: list[Rate]) -> Rate | None:
        return min(rates, key=lambda rate: (not rate.is_exceeded, rate.remaining), default=None)


# Refused requests. This protection of logins is never switched off.
debts = AddressRates("debt", debt_figure, is_switchable=False)
# Requests without a credential.
visits = AddressRates("visit", visit_figure, is_switchable=True)
# Requests without a credential from a browser that has completed a login.
browsers = AddressRates("browser", browser_figure, is_switchable=True)


def debt_of(tenant_id: str, origin: Origin) -> Rate:
    """Return the debt of an IP address at a tenant as a rate.

    `remaining` is the number of requests that may still be refused before further refusals become a 429. If the IP address is unknown,
    return the full limit.
    """
    return debts.look(origin.keys_at(tenant_id)) or Window.now(debt_figure()).rate(0)


async def charged_debt(tenant_id: str, origin: Origin) -> Rate:
    """Charge a refused request to its IP address. Return the rate that decides whether the response becomes a 429."""
    note_refusal(origin.keys)
    return await debts.count_async(origin.keys_at(tenant_id)) or Window.now(debt_figure()).rate(0)


def charged_debt_in_thread(tenant_id: str, origin: Origin) -> Rate:
    """Like `charged_debt`, but for callers in a thread: blocks while it calls Redis."""
    note_refusal(origin.keys)
    return debts.count(origin.keys_at(tenant_id)) or Window.now(debt_figure()).rate(0)
