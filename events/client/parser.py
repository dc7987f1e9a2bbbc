"""An incremental parser of the event stream format (WHATWG HTML, 9.2.6). Accepts bytes in pieces of any size and yields items. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_RETRY_DIGITS = 12
# The largest event of our service has 512 KiB; comparable services limit events to 1 MiB.
DEFAULT_MAX_BYTES = 8 * 1024 * 1024


class BlockTooLarge(Exception):
    """The server sends a block above the size limit."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"A block of the stream has more than {max_bytes} bytes.")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment, which keeps a connection alive. `raw` contains the bytes after the previous item."""

    text: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Retry:
    """The reconnect delay that the server requests."""

    milliseconds: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A block that contains no message, because it has no data, but changes the last event id."""

    id: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Message:
    """A block with data. `data` contains the bytes from the wire; `id` is the last event id after this message."""

    event: str
    data: bytes
    id: str
    raw: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


Item = Comment | Retry | Bookmark | Message


class EventStreamParser:
    """Converts the bytes of one body to items. Drops an unfinished block at the end of the body.

    The `raw` of all items and `pending`, joined, equal the bytes that the caller passed to `feed`.
    """

    def __init__(self, *, last_id: str = "", max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        # The start of the next line, and the index up to which the buffer contains no line end.
        self._start = 0
        self._scanned = 0
        self._at_beginning = True
        self._after_cr = False
        self._last_id = last_id
        self._id = last_id
        self._event = b""
        self._data: list[bytes] = []

    @property
    def pending(self) -> bytes:
        """Return the bytes after the last item."""
        return bytes(self._buffer)

    def feed(self, piece: bytes) -> Iterator[Item]:
        """Yield the items that `piece` completes. Raises `BlockTooLarge`."""
        self._buffer += piece
        while (line := self._next_line()) is not None:
            item = self._read(line)
            if item is not None:
                yield item
        if len(self._buffer) > self._max_bytes:
            raise BlockTooLarge(self._max_bytes)

    def _next_line(self) -> bytes | None:
        """Return the next complete line without its end.

        A line ends with LF, CR LF, or CR; a CR ends it without waiting for an LF.
        """
        if self._at_beginning and not self._skip_byte_order_mark():
            return None
        if self._after_cr and len(self._buffer) > self._start:
            self._after_cr = False
            if self._buffer[self._start] == 0x0A:
                self._start += 1
                self._scanned = self._start
        feed = self._buffer.find(b"\n", self._scanned)
        carriage_return = self._buffer.find(b"\r", self._scanned, feed if feed >= 0 else None)
        end = carriage_return if carriage_return >= 0 else feed
        if end < 0:
            self._scanned = len(self._buffer)
            return None
        self._after_cr = self._buffer[end] == 0x0D
        line = bytes(self._buffer[self._start : end])
        self._start = self._scanned = end + 1
        return line

    def _skip_byte_order_mark(self) -> bool:
        head = bytes(self._buffer[: len(_BYTE_ORDER_MARK)])
        if len(head) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(head):
            return False
        self._at_beginning = False
        if head == _BYTE_ORDER_MARK:
            self._start = self._scanned = len(_BYTE_ORDER_MARK)
        return True

    def _taken(self) -> bytes:
        raw = bytes(self._buffer[: self._start])
        del self._buffer[: self._start]
        self._start = self._scanned = 0
        return raw

    def _read(self, line: bytes) -> Item | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"":
                return Comment(value.decode("utf-8", "replace"), self._taken())
            case b"event":
                self._event = value
            case b"data":
                self._data.append(value)
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit():
                # Cut off further digits: the delay is effectively infinite without them, and Python refuses to parse thousands of digits.
                return Retry(int(value[:_LONGEST_RETRY_DIGITS]), self._taken())
        return None

    def _dispatch(self) -> Message | Bookmark | None:
        """End a block. Its id becomes the last event id, even if the block has no data."""
        event, self._event = self._event, b""
        data, self._data = self._data, []
        moved, self._last_id = self._id != self._last_id, self._id
        # A block with an empty `data:` line is a message with empty data. Only a block without any `data` line is no message.
        if data:
            return Message(event.decode("utf-8", "replace") or "message", b"\n".join(data), self._id, self._taken())
        return Bookmark(self._id, self._taken()) if moved else None
