"""Which budget pays for a request: the tenant's once its client is proven, and never before; else that of the address."""

from __future__ import annotations

from authapi.edge import throttling
from authapi.edge.throttling import Rate
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase


class Charge:
    """What one request has charged so far. `rate` is that of the tenant, None until something was proven."""

    __slots__ = ("_endpoint", "may_wait", "rate", "tenant_id")

    def __init__(self, tenant_id: str, endpoint: str) -> None:
        self.tenant_id = tenant_id
        self._endpoint = endpoint
        self.rate: Rate | None = None
        # Whether Redis may be asked. On the event loop it may not: there `NoPlace` is raised where this process holds none.
        self.may_wait = True

    def prove(self) -> None:
        """Charge the tenant, once: its client was proven. Raises `RequestRefused` where the tenant has none left."""
        if not self.settle().is_exceeded:
            return
        raise RequestRefused(RequestCase.TOO_MANY_REQUESTS)

    def settle(self) -> Rate:
        """Charge the tenant, once, for what is done already: a code was redeemed, a token was shown."""
        if self.rate is None:
            take = throttling.hit if self.may_wait else throttling.hit_at_once
            self.rate = take(self.tenant_id, self._endpoint)
        return self.rate

    def require_room(self) -> None:
        """Refuse before a code or token is used up that the tenant could not pay for. Costs no round trip.

        Raises `RequestRefused`.
        """
        full = throttling.is_full(self.tenant_id, self._endpoint)
        if full is not None:
            self.rate = full
            raise RequestRefused(RequestCase.TOO_MANY_REQUESTS)
