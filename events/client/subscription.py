"""A subscription that reconnects with the offset of the last message that its caller has handled.

No event is lost or repeated while the process runs: the next connection starts after the last yielded message, and an incomplete
block is never yielded.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from events.client.backoff import Backoff
from events.client.credentials import Credentials
from events.client.exchange import Deadlines, Exchange, exchange
from events.client.failures import Ended, NoStream, Remedy, StreamError, ended_by, printable
from events.client.parser import BlockTooLarge, Bookmark, Comment, EventStreamParser, Item, Message, Retry
from events.client.server import Server

# A connection that has lasted for more than this many seconds counts as progress, even if no event has arrived.
_LASTING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The event types to read, and where a stream without an offset starts: after a cursor, at a time, or at the head of the log."""

    types: tuple[str, ...] = ()
    cursor: str | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection was opened."""

    status: int
    number: int


@dataclass(frozen=True, slots=True)
class Drained:
    """All received items were yielded, so the caller can flush its output and store the offset."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A connection has ended; the next connection follows after a pause. `error` is None after a normal end."""

    error: StreamError | None
    pause_seconds: float


Happening = Item | Opened | Drained | Closed


@dataclass(frozen=True, slots=True)
class Endurance:
    """When to stop: after the first connection, or after this many seconds without a successful connection."""

    is_once: bool = False
    give_up_seconds: float | None = None


class Subscription:
    """Reads one stream. `offset` is the offset of the last message that the caller has handled."""

    def __init__(
        self,
        server: Server,
        credentials: Credentials,
        wanted: Wanted,
        *,
        offset: str | None = None,
        deadlines: Deadlines = Deadlines(),  # noqa: B008  (frozen)
        endurance: Endurance = Endurance(),
        backoff: Backoff | None = None,
    ) -> None:
        self.offset = offset
        self.connections = 0
        self._server = server
        self._credentials = credentials
        self._wanted = wanted
        self._deadlines = deadlines
        self._endurance = endurance
        self._backoff = backoff or Backoff(random.random)
        self._is_token_new = False
        self._well_at = time.monotonic()

    def happenings(self) -> Iterator[Happening]:
        """Yield items and changes of the connection, without end. Raises `StreamError` after a failure that a new connection would repeat,
        or if no connection has succeeded for too long.

        With `is_once`, the iterator ends after a normal end of the connection, and raises the error after any other end.
        """
        while True:
            opened_at, offset = time.monotonic(), self.offset
            error: StreamError | None = None
            try:
                yield from self._connection()
            except StreamError as failure:
                error = failure
                if not self._may_go_on(failure):
                    raise
            if isinstance(error, Ended) and error.is_planned:
                error = None
            if self._endurance.is_once:
                if error is not None:
                    raise error
                return
            if self.offset != offset or self._well_at - opened_at > _LASTING_SECONDS:
                pause = self._backoff.after_progress()
            else:
                pause = self._backoff.after_failure(error.retry_after if error else None)
            yield Closed(error, pause)
            time.sleep(pause)

    def _may_go_on(self, error: StreamError) -> bool:
        if error.remedy is Remedy.STOP:
            return False
        if error.remedy is Remedy.NEW_TOKEN:
            # The server has refused a new token, too, so a further request with this token would fail.
            if self._is_token_new or not self._credentials.renew():
                return False
            self._is_token_new = True
        limit = self._endurance.give_up_seconds
        return limit is None or time.monotonic() - self._well_at < limit

    def _connection(self) -> Iterator[Happening]:
        with self._open() as stream:
            self.connections += 1
            self._is_token_new = False
            self._well_at = time.monotonic()
            yield Opened(stream.status, self.connections)
            parser = EventStreamParser(last_id=self.offset or "")
            while piece := stream.read():
                try:
                    for item in parser.feed(piece):
                        yield from self._handed_over(item)
                except BlockTooLarge as error:
                    raise NoStream(str(error)) from error
                self._well_at = time.monotonic()
                yield Drained()

    def _handed_over(self, item: Item) -> Iterator[Item]:
        match item:
            case Retry(milliseconds):
                self._backoff.wish(milliseconds)
            case Message("error", data):
                yield item
                raise ended_by(data)
            case Comment() | Message() | Bookmark():
                pass
        yield item
        # The caller requested the next item, so it has handled this item.
        if isinstance(item, Message | Bookmark) and item.id:
            self.offset = item.id

    def _open(self) -> Exchange:
        stream = self._asked()
        if self._credentials.must_repeat(stream):
            stream.close()
            stream = self._asked()
        return self._checked(stream)

    def _asked(self) -> Exchange:
        headers = {
            "Accept": "text/event-stream",
            # Request no compression, because a proxy delays a compressed stream until a block is full.
            "Accept-Encoding": "identity",
            "Cache-Control": "no-store",
            **self._credentials.headers("GET", self._server.events_url),
        }
        if self.offset is not None:
            headers["Last-Event-ID"] = self.offset
        return exchange(self._server, f"{self._server.events_path}{self._query()}", headers, deadlines=self._deadlines)

    def _checked(self, stream: Exchange) -> Exchange:
        try:
            if stream.status != 200:
                raise stream.refusal()
            content_type = stream.header("Content-Type")
            if content_type.partition(";")[0].strip().lower() != "text/event-stream":
                raise NoStream(
                    f"The response has status 200, but its content type is not text/event-stream: {printable(content_type) or 'none'}."
                )
            return stream
        except BaseException:
            stream.close()
            raise

    def _query(self) -> str:
        pairs = [("event_type", name) for name in self._wanted.types]
        # After the first offset, `Last-Event-ID` contains the position. The original start is not sent again, because it may have expired.
        if self.offset is None and self._wanted.cursor is not None:
            pairs.append(("from", self._wanted.cursor))
        elif self.offset is None and self._wanted.timestamp is not None:
            pairs.append(("from_timestamp", self._wanted.timestamp))
        return f"?{urlencode(pairs)}" if pairs else ""
