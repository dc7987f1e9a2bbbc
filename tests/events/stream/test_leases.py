"""Slots of streams with a real Redis, and without Redis."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

import pytest
from django.conf import settings

from events.stream.operating.leases import Leases, ProcessLimitReached, TenantLimitReached

NOWHERE = "redis://127.0.0.1:1/0"
_made: list[Leases] = []


def _leases(*, url: str = "", prefix: str = "", seconds: float = 30.0, process_limit: int = 100) -> Leases:
    made = Leases(url or settings.REDIS_URL, prefix or f"{settings.REDIS_PREFIX}:{secrets.token_hex(6)}", seconds, process_limit)
    _made.append(made)
    return made


def _run(story: Callable[[], Awaitable[None]]) -> None:
    async def told() -> None:
        try:
            async with asyncio.timeout(20):
                await story()
        finally:
            while _made:
                await _made.pop().close()

    asyncio.run(told())


def test_a_tenant_gets_no_more_slots_than_its_limit() -> None:
    async def story() -> None:
        leases = _leases()
        held = [await leases.acquire("acme", limit=2) for _ in range(2)]
        with pytest.raises(TenantLimitReached):
            await leases.acquire("acme", limit=2)
        await leases.acquire("other", limit=2)
        leases.release(held[0])
        leases.release(held[0])
        await asyncio.gather(*leases._released)
        await leases.acquire("acme", limit=2)

    _run(story)


def test_thousands_of_slots_that_are_freed_together_are_available_immediately() -> None:
    async def story() -> None:
        prefix = f"{settings.REDIS_PREFIX}:{secrets.token_hex(6)}"
        leases, other = _leases(prefix=prefix, process_limit=3000), _leases(prefix=prefix)
        held = [await leases.acquire("acme", limit=2000) for _ in range(2000)]
        for lease in held:
            leases.release(lease)
        await asyncio.gather(*leases._released)
        assert await other.acquire("acme", limit=1) is not None

    _run(story)


def test_concurrent_connections_do_not_exceed_the_limit() -> None:
    async def story() -> None:
        leases = _leases()
        answers = await asyncio.gather(*(leases.acquire("acme", limit=5) for _ in range(20)), return_exceptions=True)
        assert sum(not isinstance(answer, Exception) for answer in answers) <= 5
        assert {type(answer) for answer in answers if isinstance(answer, Exception)} == {TenantLimitReached}

    _run(story)


def test_slots_of_all_processes_are_counted_together() -> None:
    async def story() -> None:
        prefix = f"{settings.REDIS_PREFIX}:{secrets.token_hex(6)}"
        one, two = _leases(prefix=prefix), _leases(prefix=prefix)
        await one.acquire("acme", limit=2)
        await two.acquire("acme", limit=2)
        with pytest.raises(TenantLimitReached):
            await one.acquire("acme", limit=2)

    _run(story)


def test_the_slots_of_a_killed_process_expire() -> None:
    async def story() -> None:
        prefix = f"{settings.REDIS_PREFIX}:{secrets.token_hex(6)}"
        # The killed process (`dead`) does not renew or free its slots.
        dead, alive = _leases(prefix=prefix, seconds=0.3), _leases(prefix=prefix, seconds=0.3)
        await dead.acquire("acme", limit=1)
        started = asyncio.get_running_loop().time()
        while True:
            try:
                await alive.acquire("acme", limit=1)
                break
            except TenantLimitReached:
                await asyncio.sleep(0.02)
        assert asyncio.get_running_loop().time() - started >= 0.2

    _run(story)


def test_a_renewed_slot_is_valid_after_its_first_lease_and_after_a_flush_of_redis() -> None:
    async def story() -> None:
        prefix = f"{settings.REDIS_PREFIX}:{secrets.token_hex(6)}"
        one, two = _leases(prefix=prefix, seconds=1.5), _leases(prefix=prefix, seconds=1.5)
        await one.acquire("acme", limit=1)
        await one._redis.delete(one._key("acme"))
        renewing = asyncio.create_task(one.renew())
        for _ in range(400):
            if await one._redis.zcard(one._key("acme")):
                break
            await asyncio.sleep(0.02)
        assert await one._redis.zcard(one._key("acme")) == 1
        until = asyncio.get_running_loop().time() + 2.0
        while asyncio.get_running_loop().time() < until:
            with pytest.raises(TenantLimitReached):
                await two.acquire("acme", limit=1)
            await asyncio.sleep(0.05)
        renewing.cancel()

    _run(story)


def test_a_full_process_refuses_a_stream_and_keeps_no_slot() -> None:
    async def story() -> None:
        leases = _leases(process_limit=1)
        held = await leases.acquire("acme", limit=9)
        with pytest.raises(ProcessLimitReached):
            await leases.acquire("other", limit=9)
        leases.release(held)
        await leases.acquire("other", limit=9)

    _run(story)


def test_without_redis_each_process_counts_its_own_slots_without_delay() -> None:
    async def story() -> None:
        leases = _leases(url=NOWHERE)
        started = asyncio.get_running_loop().time()
        for _ in range(3):
            await leases.acquire("acme", limit=3)
        with pytest.raises(TenantLimitReached):
            await leases.acquire("acme", limit=3)
        assert asyncio.get_running_loop().time() - started < 1.0

    _run(story)


def test_the_slots_of_a_killed_process_expire_while_another_process_renews_its_slots() -> None:
    async def story() -> None:
        prefix = f"{settings.REDIS_PREFIX}:{secrets.token_hex(6)}"
        # The renewing process (`alive`) prolongs the lifetime of the Redis key, which contains the slots of all processes. So a slot of the
        # killed process (`dead`) can expire only by its own score.
        dead, alive = _leases(prefix=prefix, seconds=0.5), _leases(prefix=prefix, seconds=0.5)
        await dead.acquire("acme", limit=2)
        await alive.acquire("acme", limit=2)
        renewing = asyncio.create_task(alive.renew())
        until = asyncio.get_running_loop().time() + 5
        while True:
            try:
                await alive.acquire("acme", limit=2)
                break
            except TenantLimitReached:
                assert asyncio.get_running_loop().time() < until, "the slot of the killed process did not expire"
                await asyncio.sleep(0.02)
        renewing.cancel()

    _run(story)
