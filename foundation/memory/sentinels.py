"""Connections to the master that the sentinels name. Decision: docs/adr/0125.

A former master that restarts reports itself as master until a sentinel has demoted it, and a restarted sentinel can still name the former
master. So several sentinels are queried, the master of the newest configuration is used, and each new connection checks the role of its
server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# mypy: disable-error-code="no-untyped-call"
# redis-py's sentinel module has no types.
import redis
import redis.asyncio
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.sentinel
from redis.backoff import NoBackoff
from redis.retry import Retry

from foundation.memory.sentinel_address import SentinelAddress

Place = tuple[str, int]


class NotTheMaster(redis.ConnectionError):
    """The server is a replica. The next connection queries the sentinels again."""


@dataclass(frozen=True)
class View:
    """The master as one sentinel sees it. Each failover has a higher `epoch`."""

    epoch: int
    place: Place
    is_up: bool


def view_of(state: dict[str, Any]) -> View:
    """Return the view in one entry of `SENTINEL MASTERS`."""
    is_up = bool(state["is_master"]) and not state["is_sdown"] and not state["is_odown"]
    return View(int(state["config-epoch"]), (state["ip"], int(state["port"])), is_up)


def is_agreed(views: Iterable[View], *, sentinels: int) -> bool:
    """Tell whether more than half of the sentinels have the same view. Then the other sentinels need not be queried."""
    counts = Counter(view for view in views if view.is_up)
    return bool(counts) and max(counts.values()) * 2 > sentinels


def chosen(views: Iterable[View]) -> Place | None:
    """Return the master of the newest configuration, or None while no sentinel with that configuration reaches this master."""
    known = list(views)
    newest = max((view.epoch for view in known), default=0)
    return next((view.place for view in known if view.epoch == newest and view.is_up), None)


class Sentinels(redis.sentinel.Sentinel):
    """redis-py's client of the sentinels, which compares their answers."""

    def discover_master(self, service_name: str) -> Place:
        """Return the address of the master. Raises `MasterNotFoundError`."""
        views: list[View] = []
        for sentinel in self.sentinels:
            try:
                state = sentinel.sentinel_masters().get(service_name)
            except (redis.RedisError, OSError):
                continue
            if state:
                views.append(view_of(state))
            if is_agreed(views, sentinels=len(self.sentinels)):
                break
        return _found(service_name, views)


class AsyncSentinels(redis.asyncio.sentinel.Sentinel):
    """`Sentinels` for an event loop."""

    async def discover_master(self, service_name: str) -> Place:
        """Return the address of the master. Raises `MasterNotFoundError`."""
        views: list[View] = []
        for sentinel in self.sentinels:
            try:
                state = (await sentinel.sentinel_masters()).get(service_name)
            except (redis.RedisError, OSError):
                continue
            if state:
                views.append(view_of(state))
            if is_agreed(views, sentinels=len(self.sentinels)):
                break
        return _found(service_name, views)


def _found(name: str, views: list[View]) -> Place:
    place = chosen(views)
    if place is None:
        raise redis.sentinel.MasterNotFoundError(f"no sentinel names a reachable master {name!r}")
    return place


class MasterConnection(redis.sentinel.SentinelManagedConnection):
    """A connection that refuses a replica."""

    def on_connect_check_health(self, check_health: bool = True) -> None:  # noqa: FBT001, FBT002  (redis-py's signature)
        super().on_connect_check_health(check_health=check_health)
        # Ask for the role with HELLO, which needs no permission of an ACL, unlike ROLE and INFO.
        self.send_command("HELLO", check_health=False)
        _require_master(self.read_response())


class EncryptedMasterConnection(MasterConnection, redis.sentinel.SentinelManagedSSLConnection):
    """`MasterConnection` with TLS."""


class AsyncMasterConnection(redis.asyncio.sentinel.SentinelManagedConnection):
    """`MasterConnection` for an event loop."""

    async def on_connect_check_health(self, check_health: bool = True) -> None:  # noqa: FBT001, FBT002  (redis-py's signature)
        await super().on_connect_check_health(check_health=check_health)
        await self.send_command("HELLO", check_health=False)
        _require_master(await self.read_response())


class AsyncEncryptedMasterConnection(AsyncMasterConnection, redis.asyncio.sentinel.SentinelManagedSSLConnection):
    """`AsyncMasterConnection` with TLS."""


def _require_master(hello: Any) -> None:
    # The answer is a dictionary in RESP3 (a version of the Redis protocol), and a flat list in RESP2.
    answer = hello if isinstance(hello, dict) else dict(zip(hello[::2], hello[1::2], strict=False))
    if answer.get(b"role", answer.get("role")) not in {b"master", "master"}:
        raise NotTheMaster(NotTheMaster.__doc__)


def master_pool(address: SentinelAddress, **options: Any) -> redis.sentinel.SentinelConnectionPool:
    """Return connections to the master.

    `options` are redis-py's options for these connections, such as timeouts and the connection class.
    """
    sentinels = Sentinels(address.sentinels, sentinel_kwargs=_to_sentinels(address, options) | {"retry": Retry(NoBackoff(), 0)})
    kind = EncryptedMasterConnection if address.is_encrypted else MasterConnection
    return redis.sentinel.SentinelConnectionPool(address.master, sentinels, **{"connection_class": kind, **address.to_servers, **options})


def async_master_pool(address: SentinelAddress, **options: Any) -> redis.asyncio.sentinel.SentinelConnectionPool:
    """`master_pool` for an event loop."""
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    sentinels = AsyncSentinels(address.sentinels, sentinel_kwargs=_to_sentinels(address, options) | {"retry": retry})
    kind = AsyncEncryptedMasterConnection if address.is_encrypted else AsyncMasterConnection
    return redis.asyncio.sentinel.SentinelConnectionPool(
        address.master, sentinels, **{"connection_class": kind, **address.to_servers, **options}
    )


def _to_sentinels(address: SentinelAddress, options: dict[str, Any]) -> dict[str, Any]:
    # A sentinel answers immediately, so this connection has a timeout even if the connection to the server has none.
    seconds = options["socket_connect_timeout"]
    limits = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    return {**address.to_sentinels, **limits, "ssl": address.is_encrypted}
