"""Limits the memory of request bodies: bytes per process and per IP address, until the response is sent.

An unfinished body is kept for at most half a minute. If no memory is free, the service does not drop the newest body. It finds the IP
address with the most bytes, and drops the largest unfinished body of this address. Small requests from the same IP address are therefore
still accepted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from django.conf import settings

from authapi.edge.addresses import AddressKey, customer_of
from foundation.memory.freed_memory import note_freed

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientLeft(Exception):
    """The client disconnected before its request was complete."""


class BodyTooLarge(Exception):
    """The body is larger than the limit."""


class BodyTooSlow(Exception):
    """The body took too long."""


class NoRoom(Exception):
    """Unfinished bodies use all the memory allowed for them."""


class Body:
    """One body: its received size, and the keys of the IP address that is charged for the body."""

    def __init__(self, bodies: UnreadBodies, keys: tuple[AddressKey, ...]) -> None:
        self._bodies = bodies
        self._deadline: asyncio.Timeout | None = None
        self._is_cut = False
        self.keys = keys
        self.size = 0

    async def read(self, receive: Receive, *, limit: int, seconds: float) -> bytes:
        """Return the whole body. Raises `ClientLeft`, `BodyTooLarge`, `BodyTooSlow` and `NoRoom`."""
        read = bytearray()
        try:
            async with asyncio.timeout(seconds) as self._deadline:
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeft
                    piece = message.get("body", b"")
                    if len(read) + len(piece) > limit:
                        raise BodyTooLarge
                    self._bodies.take(self, len(piece))
                    if not read and not message.get("more_body", False):
                        # The usual case: the body has arrived in one piece.
                        return bytes(piece)
                    # One buffer, because a list of one-byte pieces would need fifty times the memory.
                    read += piece
                    if not message.get("more_body", False):
                        return bytes(read)
        except TimeoutError as error:
            raise (NoRoom if self._is_cut else BodyTooSlow) from error
        finally:
            self._deadline = None

    def take_whole(self, whole: bytes, *, limit: int) -> bytes:
        """Count a body that has already arrived, and return it. Raises `BodyTooLarge` and `NoRoom`."""
        if len(whole) > limit:
            raise BodyTooLarge
        self._bodies.take(self, len(whole))
        return whole

    @property
    def is_unfinished(self) -> bool:
        """Whether more bytes are expected. Only an unfinished body can be cut."""
        return self._deadline is not None and not self._is_cut

    def cut(self) -> None:
        """Make the reader of the body stop."""
        self._is_cut = True
        # An expired timeout cannot be rescheduled. In this case, the reader of the body stops anyway.
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time())


class UnreadBodies:
    """All bodies of a process. Use only on its event loop."""

    def __init__(self, *, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._bodies: set[Body] = set()
        self._of_addresses: Counter[str] = Counter()
        self.size = 0

    @contextmanager
    def held(self, keys: tuple[AddressKey, ...]) -> Iterator[Body]:
        """Count the memory of a body until its request is answered. `keys` is empty if the IP address is unknown."""
        body = Body(self, keys)
        self._bodies.add(body)
        try:
            yield body
        finally:
            self._give_back(body)

    def take(self, body: Body, size: int) -> None:
        """Count more bytes of a body. Cut larger bodies if memory is short. Raises `NoRoom`."""
        if body not in self._bodies:
            # The body was cut, but its reader has not stopped yet.
            raise NoRoom
        for key in body.keys:
            while self._of_addresses[key.name] + size > self._most_per_address * key.factor:
                self._cut_larger(body, size, [one for one in self._bodies if key in one.keys])
        while self.size + size > self._most:
            self._cut_larger(body, size, self._of_largest_holder())
        body.size += size
        self._count(body, size)

    def _cut_larger(self, body: Body, size: int, candidates: list[Body]) -> None:
        """Cut the largest unfinished candidate. If `body` would be larger than this candidate after `size` more bytes, raise `NoRoom`
        instead."""
        largest = max((one for one in candidates if one.is_unfinished), key=lambda one: one.size, default=None)
        if largest is None or largest is body or largest.size < body.size + size:
            raise NoRoom
        largest.cut()
        self._give_back(largest)

    def _of_largest_holder(self) -> list[Body]:
        """Return the unfinished bodies of the IP address that has the most bytes.

        If the address of a body is unknown, the body counts separately.
        """
        held: Counter[str | int] = Counter()
        for one in self._bodies:
            if one.is_unfinished:
                held[_holder(one)] += one.size
        if not held:
            return []
        holder = max(held, key=lambda name: held[name])
        return [one for one in self._bodies if one.is_unfinished and _holder(one) == holder]

    def _give_back(self, body: Body) -> None:
        if body not in self._bodies:
            return
        self._bodies.discard(body)
        self._count(body, -body.size)
        note_freed(body.size)

    def _count(self, body: Body, size: int) -> None:
        self.size += size
        for key in body.keys:
            self._of_addresses[key.name] += size
            if self._of_addresses[key.name] <= 0:
                self._of_addresses.pop(key.name, None)


def _holder(body: Body) -> str | int:
    return customer_of(body.keys) or id(body)


@lru_cache(maxsize=1)
def unread_bodies() -> UnreadBodies:
    """Return the `UnreadBodies` of this process, created at the first call."""
    return UnreadBodies(most=settings.UNREAD_BODY_BYTES, most_per_address=settings.UNREAD_BODY_BYTES_PER_ADDRESS)
