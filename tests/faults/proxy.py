"""A TCP proxy and balancer with faults that a test selects: it stops reading, adds latency, flips bytes, and resets connections."""

from __future__ import annotations

import asyncio
import itertools
import random
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

Address = tuple[str, int]
_PIECE = 16 * 1024
_RESET = struct.pack("ii", 1, 0)


class Proxy:
    """A context manager that forwards connections to `targets` in turn, and skips targets that do not listen.

    A target is a host with a port, or the path of a Unix socket. With `tls`, the proxy decrypts the bytes of clients.
    """

    def __init__(self, *targets: Address | Path, listen_backlog: int = 1024, tls: ssl.SSLContext | None = None) -> None:
        self.targets = list(targets)
        self.address: Address = ("127.0.0.1", 0)
        self.is_stalled = False
        # Latency in seconds of every byte, in each direction.
        self.delay_seconds = 0.0
        # The share of forwarded pieces in which one byte is changed, in each direction.
        self.flip_share = 0.0
        self.flipped = 0
        self.random = random.Random()
        self.opened = 0
        self._turn: Iterator[int] = itertools.count()
        self._backlog, self._tls = listen_backlog, tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._pairs: set[asyncio.StreamWriter] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def reset_all(self) -> None:
        """Reset every connection, as if the machine restarted."""
        self._loop.call_soon_threadsafe(self._reset)

    def _reset(self) -> None:
        for writer in list(self._pairs):
            with suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()

    def inject(self, data: bytes, *, to_clients: bool) -> None:
        """Insert `data` into every connection, in the direction of the clients or of the targets."""
        asyncio.run_coroutine_threadsafe(self._inject(data, to_clients=to_clients), self._loop).result(5)

    async def _inject(self, data: bytes, *, to_clients: bool) -> None:
        for writer in self._clients if to_clients else self._pairs - self._clients:
            writer.write(data)

    async def _serve(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, backlog=self._backlog, ssl=self._tls)
        self.address = self._server.sockets[0].getsockname()[:2]

    def _accepted(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._connected(client_in, client_out))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # The task does not close the connection if it is canceled before it starts.
        task.add_done_callback(partial(_abort, client_out))

    async def _connected(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        upstream = await self._upstream()
        if upstream is None:
            client_out.transport.abort()
            return
        self.opened += 1
        upstream_in, upstream_out = upstream
        self._pairs |= {client_out, upstream_out}
        self._clients.add(client_out)
        ways = [
            self._loop.create_task(self._pass_on(client_in, upstream_out)),
            self._loop.create_task(self._pass_on(upstream_in, client_out)),
        ]
        try:
            # If one side closes its connection, close the connection of the other side.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._pairs -= {client_out, upstream_out}
            self._clients.discard(client_out)
            client_out.close()
            upstream_out.close()

    async def _upstream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in range(len(self.targets)):
            target = self.targets[next(self._turn) % len(self.targets)]
            try:
                # `asyncio.wait_for` is not used: with it, a cancellation at the last moment would lose the open connection.
                async with asyncio.timeout(2.0):
                    return await _connection(target)
            except OSError:
                continue
        return None

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while True:
            while self.is_stalled:  # noqa: ASYNC110  (set by the test's own thread)
                await asyncio.sleep(0.02)
            data = await source.read(_PIECE)
            if not data:
                # The end of this direction also ends the other direction. So first wait until the delayed bytes of both have arrived.
                await asyncio.sleep(self.delay_seconds)
                return
            data = self._damaged(data)
            if self.delay_seconds:
                self._loop.call_later(self.delay_seconds, sink.write, data)
            else:
                sink.write(data)
            await sink.drain()

    def has_flipped(self, count: int) -> bool:
        return self.flipped >= count

    def _damaged(self, data: bytes) -> bytes:
        if self.random.random() >= self.flip_share:
            return data
        self.flipped += 1
        damaged = bytearray(data)
        damaged[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        return bytes(damaged)

    def __enter__(self) -> Proxy:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(5)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # Aborted and closed transports close their sockets in the next iteration of the event loop.
        await asyncio.sleep(0.01)


def _abort(client: asyncio.StreamWriter, _: asyncio.Task[None]) -> None:
    if not client.is_closing():
        client.transport.abort()


async def _connection(target: Address | Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(target, Path):
        return await asyncio.open_unix_connection(target, limit=_PIECE)
    return await asyncio.open_connection(*target, limit=_PIECE)
