"""Memory of unfinished bodies is limited per process and per IP address.

A process that has reached its limit drops a body of the IP address with the most bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest

from authapi.edge.addresses import AddressKey, keys_of
from authapi.edge.unread_bodies import BodyTooLarge, BodyTooSlow, ClientLeft, NoRoom, UnreadBodies

ATTACKER, CUSTOMER = keys_of("192.0.2.1"), keys_of("198.51.100.7")
UNKNOWN: tuple[AddressKey, ...] = ()


class Sender:
    """A client that sends some pieces of its body at once, and another piece each time when `send` is called."""

    def __init__(self, *pieces: bytes, is_whole: bool = False) -> None:
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for number, piece in enumerate(pieces):
            self.send(piece, is_last=is_whole and number == len(pieces) - 1)

    def send(self, piece: bytes, *, is_last: bool = False) -> None:
        self._messages.put_nowait({"type": "http.request", "body": piece, "more_body": not is_last})

    def leave(self) -> None:
        self._messages.put_nowait({"type": "http.disconnect"})

    async def receive(self) -> MutableMapping[str, Any]:
        return await self._messages.get()


async def read(bodies: UnreadBodies, sender: Sender, keys: tuple[AddressKey, ...], *, seconds: float = 30.0) -> bytes:
    with bodies.held(keys) as body:
        return await body.read(sender.receive, limit=1000, seconds=seconds)


async def parked(bodies: UnreadBodies, size: int, keys: tuple[AddressKey, ...]) -> asyncio.Task[bytes]:
    """Start a request whose body stops in the middle. Returns after the received bytes are counted."""
    before = bodies.size
    task = asyncio.ensure_future(read(bodies, Sender(b"x" * size), keys))
    await until(lambda: bodies.size == before + size or task.done())
    return task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  (the tasks of the test have no event to wait for)
            await asyncio.sleep(0)


async def test_a_body_is_read_completely_and_counted_only_until_the_request_is_answered() -> None:
    bodies = UnreadBodies(most=100, most_per_address=100)
    with bodies.held(CUSTOMER) as body:
        assert await body.read(Sender(b"ab", b"cd", is_whole=True).receive, limit=10, seconds=30) == b"abcd"
        assert bodies.size == 4
    assert bodies.size == 0
    assert not bodies._of_addresses


async def test_the_unfinished_bodies_of_one_ip_address_cannot_exceed_their_limit() -> None:
    bodies = UnreadBodies(most=10_000, most_per_address=100)
    first = [await parked(bodies, 50, ATTACKER) for _ in range(2)]
    with pytest.raises(NoRoom):
        await read(bodies, Sender(b"x" * 60), ATTACKER)
    assert bodies.size == 100
    assert await read(bodies, Sender(b"y" * 90, is_whole=True), CUSTOMER) == b"y" * 90
    await given_up(*first)


async def test_a_small_body_replaces_a_larger_unfinished_body_of_the_same_ip_address() -> None:
    bodies = UnreadBodies(most=10_000, most_per_address=100)
    large, small = await parked(bodies, 70, ATTACKER), await parked(bodies, 30, ATTACKER)
    assert await read(bodies, Sender(b"y" * 10, is_whole=True), ATTACKER) == b"y" * 10
    with pytest.raises(NoRoom):
        await large
    assert not small.done()
    await given_up(small)


async def test_a_full_process_drops_a_body_of_the_ip_address_with_the_most_bytes() -> None:
    bodies = UnreadBodies(most=100, most_per_address=90)
    attacks = [await parked(bodies, 40, ATTACKER) for _ in range(2)]
    other = await parked(bodies, 15, CUSTOMER)
    assert await read(bodies, Sender(b"y" * 30, is_whole=True), keys_of("203.0.113.9")) == b"y" * 30
    await until(lambda: any(task.done() for task in attacks))
    assert not other.done()
    assert bodies.size == 55
    await given_up(other, *attacks)


async def test_bodies_of_unknown_ip_addresses_do_not_share_a_limit() -> None:
    bodies = UnreadBodies(most=1000, most_per_address=100)
    tasks = [await parked(bodies, 90, UNKNOWN) for _ in range(5)]
    assert not any(task.done() for task in tasks)
    assert bodies.size == 450
    await given_up(*tasks)


async def test_an_ipv6_site_has_sixteen_times_the_limit_of_one_of_its_networks() -> None:
    bodies = UnreadBodies(most=10_000, most_per_address=100)
    tasks = [await parked(bodies, 100, keys_of(f"2001:db8:1:{number:x}::1")) for number in range(16)]
    with pytest.raises(NoRoom):
        await read(bodies, Sender(b"x" * 101), keys_of("2001:db8:1:ff::1"))
    assert not any(task.done() for task in tasks)
    await given_up(*tasks)


async def test_an_overdue_body_is_dropped_before_its_reader_continues() -> None:
    bodies = UnreadBodies(most=100, most_per_address=100)
    loop, sizes, sent = asyncio.get_running_loop(), list[int](), [b"x" * 90]

    def make_room() -> None:
        with bodies.held(CUSTOMER) as body:
            bodies.take(body, 80)
            sizes.append(bodies.size)

    async def receive() -> MutableMapping[str, Any]:
        if not sent:
            # The timeout is already due. So the order is: the callback of the timeout, then `make_room`, then the reader continues.
            loop.call_soon(make_room)
            await loop.create_future()
        return {"type": "http.request", "body": sent.pop(), "more_body": True}

    with bodies.held(ATTACKER) as slow, pytest.raises(NoRoom):
        await slow.read(receive, limit=1000, seconds=0.0)
    assert (sizes, bodies.size) == ([80], 0)


async def test_a_complete_body_stays_counted_while_its_request_is_answered() -> None:
    bodies = UnreadBodies(most=100, most_per_address=100)
    with bodies.held(ATTACKER) as body:
        await body.read(Sender(b"x" * 90, is_whole=True).receive, limit=1000, seconds=30)
        with pytest.raises(NoRoom):
            await read(bodies, Sender(b"y" * 20, is_whole=True), CUSTOMER)
        assert bodies.size == 90


@pytest.mark.parametrize(
    ("sender", "error"),
    [(lambda: Sender(b"x" * 600, b"x" * 600), BodyTooLarge), (lambda: Sender(b"x"), BodyTooSlow)],
)
async def test_no_bytes_of_a_refused_body_stay_counted(sender: Callable[[], Sender], error: type[Exception]) -> None:
    bodies = UnreadBodies(most=10_000, most_per_address=10_000)
    with pytest.raises(error):
        await read(bodies, sender(), ATTACKER, seconds=0.0 if error is BodyTooSlow else 30.0)
    assert bodies.size == 0


async def test_the_bytes_of_a_client_that_disconnects_are_freed() -> None:
    bodies = UnreadBodies(most=100, most_per_address=100)
    sender = Sender(b"x" * 80)
    sender.leave()
    with pytest.raises(ClientLeft):
        await read(bodies, sender, ATTACKER)
    assert bodies.size == 0


async def test_the_count_of_a_body_in_pieces_of_one_byte_is_the_number_of_its_bytes() -> None:
    bodies = UnreadBodies(most=500, most_per_address=500)
    sender = Sender(*[b"x"] * 500, is_whole=True)
    assert await read(bodies, sender, CUSTOMER) == b"x" * 500


async def given_up(*tasks: asyncio.Task[bytes]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
