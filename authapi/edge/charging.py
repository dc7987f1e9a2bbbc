"""Counts a request against the limit of its tenant if the client has authenticated, otherwise against the limit of its IP address."""

from __future__ import annotations

from authapi.edge import throttling
from authapi.edge.throttling import Rate
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase


class Charge:
    """How one request is counted. `rate` is None until the request is counted against the tenant, then it is the rate of the tenant."""

    __slots__ = ("_endpoint", "may_wait", "rate", "tenant_id")

    def __init__(self, tenant_id: str, endpoint: str) -> None:
        self.tenant_id = tenant_id
        self._endpoint = endpoint
        self.rate: Rate | None = None
        # Whether Redis may be called. Code on the event loop must not call Redis: it gets `NoPlace` if this process has no reserved place
        # in the rate window (`rate_leases`).
        self.may_wait = True

    def prove(self) -> None:
        """Count the request against the tenant, at most once. Raises `RequestRefused` if the tenant has no requests left."""
        if not self.settle().is_exceeded:
            return
        raise RequestRefused(RequestCase.TOO_MANY_REQUESTS)

    def settle(self) -> Rate:
        """Count the request against the tenant, at most once. Never refuses, because the work is already done."""
        if self.rate is None:
            take = throttling.hit if self.may_wait else throttling.hit_at_once
            self.rate = take(self.tenant_id, self._endpoint)
        return self.rate

    def require_room(self) -> None:
        """Raise `RequestRefused` if the tenant has no requests left. Call it before using up a code or token. Makes no call to Redis."""
        full = throttling.is_full(self.tenant_id, self._endpoint)
        if full is not None:
            self.rate = full
            raise RequestRefused(RequestCase.TOO_MANY_REQUESTS)
