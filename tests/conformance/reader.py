"""A client of event streams on a plain socket, which shows what client libraries hide: bytes, chunks and the end of the body."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlencode

import orjson


@dataclass
class Block:
    """One block of a stream, with its fields and its comments."""

    event: str = ""
    id: str | None = None
    data: str = ""
    retry: str | None = None
    comments: list[str] = field(default_factory=list)

    @property
    def message(self) -> Any:
        return orjson.loads(self.data)


class StreamEnded(Exception):
    """The body has ended."""


class Subscriber:
    """One HTTP/1.1 request and its streamed response. Every wait has a timeout."""

    still_open: ClassVar[set[Subscriber]] = set()

    def __init__(
        self,
        address: tuple[str, int],
        path: str = "/api/v2/events",
        *,
        method: str = "GET",
        headers: dict[str, str],
        query: dict[str, Any] | str | None = None,
        receive_buffer: int | None = None,
        deadline: float = 10.0,
        answered: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.socket = socket.socket()
        self.still_open.add(self)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(deadline)
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=address[0])
        self.deadline = deadline
        self.ended_cleanly = False
        # Append to the buffer. Copying a long body with every chunk would make the reader so slow that the service disconnects it.
        self.body = bytearray()
        self._wire = b""
        self._taken = 0
        text = query if isinstance(query, str) else urlencode(query or {}, doseq=True)
        lines = [f"{method} {path}{'?' + text if text else ''} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        if answered:
            self._read_head()

    def _read_head(self) -> None:
        while b"\r\n\r\n" not in self._wire:
            self._receive(time.monotonic() + self.deadline)
        head, _, self._wire = self._wire.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        pairs = [line.partition(":") for line in rest]
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}

    def _receive(self, until: float) -> None:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("no data arrived in time")
        self.socket.settimeout(left)
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError as error:
            raise StreamEnded from error
        if not data:
            raise StreamEnded
        self._wire += data

    def _more_body(self, until: float) -> None:
        if "content-length" in self.headers:
            while len(self._wire) < int(self.headers["content-length"]):
                self._receive(until)
            self.body += self._wire
            raise StreamEnded
        if self.headers.get("transfer-encoding") != "chunked":
            self._receive(until)
            self.body += self._wire
            self._wire = b""
            return
        while not self._chunk():
            self._receive(until)

    def _chunk(self) -> bool:
        size_line, separator, rest = self._wire.partition(b"\r\n")
        if not separator:
            return False
        size = int(size_line.partition(b";")[0], 16)
        if len(rest) < size + 2:
            return False
        if size == 0:
            self.ended_cleanly = True
            raise StreamEnded
        self.body += rest[:size]
        self._wire = rest[size + 2 :]
        return True

    def document(self) -> Any:
        """Return the JSON of a response that is not a stream."""
        self.read_to_end()
        return orjson.loads(self.body)

    def read_to_end(self, *, within: float = 10.0) -> bytes:
        """Read until the body ends, and return the whole body."""
        until = time.monotonic() + within
        try:
            while True:
                self._more_body(until)
        except StreamEnded:
            return bytes(self.body)

    def block(self, *, within: float | None = None) -> Block:
        """Return the next block. Raise `StreamEnded` at the end, and `TimeoutError` if no block arrives in time."""
        until = time.monotonic() + (within or self.deadline)
        while (end := self.body.find(b"\n\n", self._taken)) < 0:
            self._more_body(until)
        text = self.body[self._taken : end].decode()
        self._taken = end + 2
        return _parsed(text)

    def peek(self) -> bytes:
        """Read received bytes without waiting, and return the bytes that were not yet parsed as blocks."""
        with suppress(TimeoutError, BlockingIOError):
            while True:
                self._more_body(time.monotonic() + 0.001)
        return bytes(self.body[self._taken :])

    def blocks(self, *, within: float | None = None) -> Iterator[Block]:
        """Yield blocks until the stream ends."""
        try:
            while True:
                yield self.block(within=within)
        except StreamEnded:
            return

    def opened(self) -> Block:
        """Read the opening of the stream, and return its `offset-only` message."""
        assert self.status == 200, self.read_to_end()
        assert self.block().comments == ["connected"]
        assert self.block().retry is not None
        first = self.block()
        assert first.event == "offset-only"
        return first

    def events(self, count: int, *, within: float = 15.0) -> list[Block]:
        """Read and return `count` events, skipping heartbeats."""
        until = time.monotonic() + within
        found: list[Block] = []
        while len(found) < count:
            block = self.block(within=max(until - time.monotonic(), 0.001))
            assert block.event != "error", block.data
            if block.event not in {"", "offset-only"}:
                found.append(block)
        return found

    def close(self) -> None:
        self.still_open.discard(self)
        self.socket.close()

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _parsed(text: str) -> Block:
    block = Block()
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "":
                block.comments.append(value)
            case "event":
                block.event = value
            case "id":
                block.id = value
            case "retry":
                block.retry = value
            case "data":
                assert not block.data, "the data of a block is on more than one line"
                block.data = value
            case _:
                raise AssertionError(f"unknown field {name!r}")
    return block
