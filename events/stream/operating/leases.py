"""Limits the number of open streams, for each tenant and for each process, by connection slots.

A slot is a member of a sorted set in Redis. The score of the member is the expiry of the slot, so the slots of a dead process expire.
Without Redis each process counts only its own streams, so a tenant can have its maximum number of streams in each process.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import defaultdict
from dataclasses import dataclass, field

from redis.exceptions import RedisError

from events import metrics
from foundation.memory.outage_guard import OutageGuard
from foundation.memory.redis_clients import async_redis_client

logger = logging.getLogger(__name__)

_PAUSE_AFTER_FAILURE_SECONDS = 1.0
_RENEWALS_PER_LEASE = 3
# The clock of Redis decides which slots have expired, so differences between the clocks of processes have no effect.
_CLOCK = "local t = redis.call('TIME') local now = t[1] + t[2] / 1000000 "
_ACQUIRE = (
    _CLOCK
    + """
local reclaimed = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return {0, reclaimed} end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], math.ceil(tonumber(ARGV[3]) * 2000))
return {1, reclaimed}
"""
)
# Adds missing members, so that the open streams are counted again after Redis was flushed.
_RENEW = (
    _CLOCK
    + """
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + tonumber(ARGV[1]), ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], math.ceil(tonumber(ARGV[1]) * 2000))
"""
)


class TenantLimitReached(Exception):
    """The maximum number of concurrent event stream connections is reached; close existing connections."""


class ProcessLimitReached(Exception):
    """This process serves the maximum number of streams."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One slot that this process has taken."""

    tenant_id: str
    member: str


@dataclass
class Leases:
    """The slots that one process has taken."""

    url: str
    prefix: str
    lease_seconds: float
    process_limit: int
    _held: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _count: int = 0
    _given_back: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _released: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._redis = async_redis_client(self.url)
        self._guard = OutageGuard(_PAUSE_AFTER_FAILURE_SECONDS)
        self._acquire_script = self._redis.register_script(_ACQUIRE)
        self._renew_script = self._redis.register_script(_RENEW)

    async def acquire(self, tenant_id: str, *, limit: int) -> Lease:
        """Take a slot. Raises `TenantLimitReached` or `ProcessLimitReached`; the limit of the tenant is checked first."""
        lease = Lease(tenant_id, secrets.token_hex(8))
        # Count the slot before the first await, so that connections that arrive together cannot exceed the limit.
        self._add(lease)
        try:
            if len(self._held[tenant_id]) > limit or not await self._granted(lease, limit):
                raise TenantLimitReached
            if self._count > self.process_limit:
                raise ProcessLimitReached
        except BaseException:
            self.release(lease)
            raise
        return lease

    def release(self, lease: Lease) -> None:
        """Release a slot; repeated calls do nothing."""
        held = self._held.get(lease.tenant_id)
        if held is None or lease.member not in held:
            return
        held.discard(lease.member)
        if not held:
            del self._held[lease.tenant_id]
        self._count -= 1
        # A restart of a proxy ends all its streams at once. One command releases all their slots, instead of one command for each slot.
        self._given_back[lease.tenant_id].add(lease.member)
        if all(task.done() for task in self._released):
            release = asyncio.get_running_loop().create_task(self._remove())
            self._released.add(release)
            release.add_done_callback(self._released.discard)

    async def renew(self) -> None:
        """Renew every slot of this process three times within its lease, until this task is canceled."""
        while True:
            await asyncio.sleep(self.lease_seconds / _RENEWALS_PER_LEASE)
            for tenant_id, members in list(self._held.items()):
                try:
                    await self._renew_script(keys=[self._key(tenant_id)], args=[self.lease_seconds, *members])
                except (RedisError, OSError) as error:
                    self._note(error)
                    break

    async def close(self) -> None:
        """Wait until the released slots are removed in Redis, and close the connection."""
        if self._released:
            await asyncio.wait(self._released, timeout=1.0)
        await self._redis.aclose()

    def _add(self, lease: Lease) -> None:
        self._held[lease.tenant_id].add(lease.member)
        self._count += 1

    async def _granted(self, lease: Lease, limit: int) -> bool:
        if self._guard.is_open:
            return True
        try:
            granted, reclaimed = await self._acquire_script(
                keys=[self._key(lease.tenant_id)], args=[lease.member, limit, self.lease_seconds]
            )
        except (RedisError, OSError) as error:
            self._note(error)
            return True
        metrics.LEASES_RECLAIMED.inc(reclaimed)
        return bool(granted)

    async def _remove(self) -> None:
        while self._given_back:
            tenant_id, members = self._given_back.popitem()
            try:
                await self._redis.zrem(self._key(tenant_id), *members)
            except (RedisError, OSError) as error:
                # The slots are no longer renewed, so they expire.
                self._note(error)

    def _note(self, error: Exception) -> None:
        self._guard.failed()
        logger.warning("slots are counted per process for now: %s", type(error).__name__)

    def _key(self, tenant_id: str) -> str:
        return slots_key(self.prefix, tenant_id)


def slots_key(prefix: str, tenant_id: str) -> str:
    """Return the key of the sorted set with a tenant's slots."""
    return f"{prefix}:streams:{tenant_id}"
