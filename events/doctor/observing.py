"""Records a stream as it arrives: each piece of bytes with its time, and the messages parsed from the pieces."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from events.client.credentials import Credentials
from events.client.exchange import Deadlines, Exchange, exchange
from events.client.failures import Unreachable
from events.client.parser import BlockTooLarge, EventStreamParser, Item, Message
from events.client.server import Server


@dataclass(frozen=True, slots=True)
class Patient:
    """The service to examine, the credentials, and the timeouts of each request."""

    server: Server
    credentials: Credentials
    deadlines: Deadlines

    def ask(self, query: str = "", *, with_token: bool = True, **headers: str) -> Exchange:
        """Send one request to the stream. Raises `StreamError`."""
        sent = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        path = f"{self.server.events_path}{query}"
        if not with_token:
            return exchange(self.server, path, sent, deadlines=self.deadlines)
        return self.send("GET", path, sent)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Exchange:
        """Send one request with the token. Raises `StreamError`.

        If the service refuses the DPoP proof of the request, the request is sent once more with a new proof.
        """
        answer = self._sent(method, path, headers, body)
        if not self.credentials.must_repeat(answer):
            return answer
        answer.close()
        return self._sent(method, path, headers, body)

    def _sent(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Exchange:
        # A header in `headers` replaces the header of the credentials with the same name.
        shown = {**self.credentials.headers(method, f"{self.server.origin}{path}"), **headers}
        return exchange(self.server, path, shown, method=method, body=body, deadlines=self.deadlines)


@dataclass
class Observation:
    """Reads one connection and stores the received bytes and messages. Times are in seconds since the response headers arrived."""

    stream: Exchange
    pieces: list[tuple[float, int]] = field(default_factory=list)
    items: list[tuple[float, Item]] = field(default_factory=list)
    ended: str | None = None
    _parser: EventStreamParser = field(default_factory=EventStreamParser)

    @property
    def age(self) -> float:
        return time.monotonic() - self.stream.headers_at

    @property
    def first_byte_seconds(self) -> float | None:
        return self.pieces[0][0] if self.pieces else None

    @property
    def messages(self) -> list[tuple[float, Message]]:
        return [(moment, item) for moment, item in self.items if isinstance(item, Message)]

    @property
    def longest_silence(self) -> float:
        """Return the longest time in seconds without a byte, including the current silence."""
        moments = [0.0, *(moment for moment, _ in self.pieces)]
        if self.ended is None:
            moments.append(self.age)
        return max((later - earlier for earlier, later in pairwise(moments)), default=0.0)

    def watch(self, seconds: float, *, until: Callable[[Observation], bool], tell: Callable[[str], None] | None = None) -> bool:
        """Read until the condition is true. Return False if the connection or the time ends first."""
        deadline = time.monotonic() + seconds
        while not until(self):
            left = deadline - time.monotonic()
            if left <= 0 or self.ended is not None:
                return False
            self._read(left)
            if tell is not None and self.ended is None:
                tell(f"  {self.age:6.1f} s  {self.pieces[-1][1]} bytes")
        return True

    def _read(self, seconds: float) -> None:
        try:
            piece = self.stream.read(within=seconds)
        except Unreachable as error:
            # `http.client` cannot continue after a timeout, so the observation ends here.
            self.ended = "silence" if isinstance(error.__cause__, TimeoutError) else str(error)
            return
        moment = self.age
        if not piece:
            self.ended = "the end of the body"
            return
        self.pieces.append((moment, len(piece)))
        try:
            self.items += [(moment, item) for item in self._parser.feed(piece)]
        except BlockTooLarge as error:
            self.ended = str(error)
