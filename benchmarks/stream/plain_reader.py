"""The program `reader.c` in Python, for machines without a C compiler. It has the same commands, answers and counts."""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import sys
import time
from pathlib import Path
from typing import Any

_NO_EVENTS = {b"offset-only", b"error", b"keep-alive", b"stream-open", b"stream-reset", b"stream-error"}


class Stream:
    """One connection: its request, then the part of its response that is not yet counted."""

    def __init__(self, address: tuple[str, int], request: bytes) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(0)
        self.socket.connect_ex(address)
        self.request = request
        self.state = "connecting"
        self.rest = b""
        self.chunk_rest = b""
        self.is_chunked = False
        self.frames = 0

    def body_of(self, data: bytes) -> bytes:
        """Return the parts of the body in the received bytes; keep an incomplete chunk for the next call."""
        if not self.is_chunked:
            return data
        data, parts = self.chunk_rest + data, []
        while (end := data.find(b"\r\n")) > 0 and len(data) >= end + 4 + (size := int(data[:end], 16)):
            parts.append(data[end + 2 : end + 2 + size])
            data = data[end + 4 + size :]
        self.chunk_rest = data
        return b"".join(parts)


class PlainReader:
    """All streams, and the counts of frames over all streams."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.selector = selectors.DefaultSelector()
        self.selector.register(sys.stdin, selectors.EVENT_READ)
        self.streams: list[Stream] = []
        self.requests: list[bytes] = []
        self.window = self.pending = self.wanted = 0
        self.waits_for = ""
        self.deadline = 0.0
        self.marked: re.Pattern[bytes] | None = None
        self.arrivals: list[tuple[int, int, int]] = []
        self.counts = dict.fromkeys(("streams", "refused", "ended", "frames", "bytes", "reads", "started_ns", "first_ns", "last_ns"), 0)

    def run(self) -> None:
        """Serve until standard input ends."""
        while True:
            for key, _ in self.selector.select(0.02 if self.waits_for else None):
                if key.data is None:
                    line = sys.stdin.readline()
                    if not line:
                        return
                    self.obey(line.split())
                elif key.data.state == "closed":
                    continue
                elif key.data.state == "connecting":
                    self.send_request(key.data)
                else:
                    self.take(key.data)
            self.answer_when_due()

    def obey(self, words: list[str]) -> None:
        command, *given = words
        if command == "open":
            raw = Path(given[0]).read_bytes()
            while raw:
                size = int.from_bytes(raw[:4], sys.byteorder)
                self.requests.append(raw[4 : 4 + size])
                raw = raw[4 + size :]
            self.window, self.waits_for, self.deadline = int(given[1]), "open", time.monotonic() + int(given[2]) / 1000
            self.counts |= {"refused": 0, "started_ns": time.monotonic_ns()}
        elif command == "wait":
            self.wanted, self.waits_for, self.deadline = int(given[0]), "wait", time.monotonic() + int(given[1]) / 1000
        elif command == "arrivals":
            print(json.dumps({"command": "arrivals", "arrivals": self.arrivals}), flush=True)
            self.arrivals = []
        else:
            self.change(command, given)
            self.report(command)

    def change(self, command: str, given: list[str]) -> None:
        if command == "mark":
            self.marked = re.compile(re.escape(given[0].encode()) + rb"(\d+)") if given else None
        elif command == "close":
            for stream in self.streams:
                self.drop(stream)
            self.streams = []
            self.counts |= {"streams": 0, "refused": 0, "ended": 0}
        elif command == "reset":
            self.counts |= {"frames": 0, "bytes": 0, "reads": 0, "first_ns": 0, "last_ns": 0, "started_ns": time.monotonic_ns()}
            for stream in self.streams:
                stream.frames = 0

    def open_next(self) -> None:
        while self.requests and self.pending < self.window:
            stream = Stream(self.address, self.requests.pop(0))
            self.streams.append(stream)
            self.pending += 1
            self.selector.register(stream.socket, selectors.EVENT_WRITE, stream)

    def send_request(self, stream: Stream) -> None:
        try:
            stream.socket.send(stream.request)
        except OSError:
            self.drop(stream)
            return
        stream.state = "head"
        self.selector.modify(stream.socket, selectors.EVENT_READ, stream)

    def drop(self, stream: Stream) -> None:
        if stream.state == "closed":
            return
        self.selector.unregister(stream.socket)
        stream.socket.close()
        if stream.state == "open":
            self.counts["streams"] -= 1
            self.counts["ended"] += 1
        else:
            self.pending -= 1
            self.counts["refused"] += 1
        stream.state = "closed"

    def take(self, stream: Stream) -> None:
        try:
            data = stream.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now = time.monotonic_ns()
        if data and stream.state == "head":
            rest = self.take_head(stream, data, now)
            if rest is None:
                return
            data = rest
        elif not data:
            self.drop(stream)
            return
        self.counts["bytes"] += len(data)
        self.counts["reads"] += 1
        *frames, stream.rest = (stream.rest + stream.body_of(data)).split(b"\n\n")
        for frame in frames:
            self.count(stream, frame, now)

    def take_head(self, stream: Stream, data: bytes, now: int) -> bytes | None:
        """Return the bytes after the head; None while the head is incomplete, or if the server refused the request."""
        head, found, rest = (stream.rest + data).partition(b"\r\n\r\n")
        stream.rest = b"" if found else head
        if not found:
            return None
        if b" 200" not in head[:16]:
            self.drop(stream)
            return None
        stream.state, stream.is_chunked = "open", b"transfer-encoding: chunked" in head.lower()
        self.pending -= 1
        self.counts["streams"] += 1
        self.counts["last_ns"] = now
        return rest

    def count(self, stream: Stream, frame: bytes, now: int) -> None:
        fields = [line.partition(b": ") for line in frame.split(b"\n")]
        if not any(name == b"data" for name, _, _ in fields) or any(name == b"event" and value in _NO_EVENTS for name, _, value in fields):
            return
        stream.frames += 1
        self.counts["frames"] += 1
        self.counts["first_ns"] = self.counts["first_ns"] or now
        self.counts["last_ns"] = now
        if self.marked is not None and (found := self.marked.search(frame)):
            self.arrivals.append((int(found[1]), self.streams.index(stream), now))

    def answer_when_due(self) -> None:
        if self.waits_for == "open":
            self.open_next()
        is_done = not (self.pending or self.requests) if self.waits_for == "open" else self.counts["frames"] >= self.wanted
        if self.waits_for and (is_done or time.monotonic() >= self.deadline):
            self.report(self.waits_for)
            self.waits_for = ""

    def report(self, command: str) -> None:
        each = [stream.frames for stream in self.streams] or [0]
        used = os.times()
        told: dict[str, Any] = {"command": command, **self.counts, "least": min(each), "most": max(each)}
        print(json.dumps(told | {"cpu_ns": int((used.user + used.system) * 1e9)}), flush=True)


if __name__ == "__main__":
    PlainReader((sys.argv[1], int(sys.argv[2]))).run()
