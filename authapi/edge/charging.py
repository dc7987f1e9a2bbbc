"""Decides whose budget pays for a request: the tenant pays once its client is authenticated, otherwise the address pays."""

from __future__ import annotations

from authapi.edge import throttling
from authapi.edge.throttling import Rate
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase


class Charge:
    """The charge of one request. `rate` belongs to the tenant. It is None until the request is charged to the tenant."""

    __slots__ = ("_endpoint", "may_wait", "rate", "tenant_id")

    def __init__(self, tenant_id: str, endpoint: str) -> None:
        self.tenant_id = tenant_id
        self._endpoint = endpoint
        self.rate: Rate | None = None
        # Whether Redis may be called. On the event loop it must not be: `NoPlace` is raised if this process holds no place.
        self.may_wait = True

    def prove(self) -> None:
        """Charge the tenant once, because its client is authenticated. Raises `RequestRefused` if the tenant has no requests left."""
        if not self.settle().is_exceeded:
            return
        raise RequestRefused(RequestCase.TOO_MANY_REQUESTS)

    def settle(self) -> Rate:
        """Charge the tenant once for work that is already done, such as a redeemed code or a received token."""
        if self.rate is None:
            take = throttling.hit if self.may_wait else throttling.hit_at_once
            self.rate = take(self.tenant_id, self._endpoint)
        return self.rate

    def require_room(self) -> None:
        """Raise `RequestRefused` if the tenant has no requests left. Call it before using up a code or token. Costs no round trip."""
        full = throttling.is_full(self.tenant_id, self._endpoint)
        if full is not None:
            self.rate = full
            raise RequestRefused(RequestCase.TOO_MANY_REQUESTS)
