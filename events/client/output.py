"""Writes events to standard output in one of three formats, and all other lines to standard error with secrets masked."""

from __future__ import annotations

import os
from typing import Any, Protocol

from events.client.credentials import Credentials, masked
from events.client.lines import event_line
from events.client.parser import Item, Message

# Types of messages that are not events: they only advance the offset or end the stream.
CONTROL_MESSAGES = frozenset({"offset-only", "error"})


class TextStream(Protocol):
    """The methods of standard output that this module uses."""

    def write(self, text: str, /) -> Any: ...
    def flush(self) -> Any: ...


def is_event(item: object) -> bool:
    return isinstance(item, Message) and item.event not in CONTROL_MESSAGES


class Output:
    """Writes items as readable lines, as lines of JSON, or as raw bytes. Raises `BrokenPipeError` if the output stream does."""

    def __init__(self, stream: TextStream, *, form: str, is_coloured: bool) -> None:
        self._stream = stream
        self._form = form
        self._is_coloured = is_coloured
        # The binary buffer writes the bytes of events unchanged. Only the text streams in tests have no `buffer`.
        self._binary = getattr(stream, "buffer", None)

    def take(self, item: Item) -> None:
        """Write an item. The raw format includes every item; the other two formats include only events."""
        if self._form == "raw":
            self._write(item.raw)
        elif isinstance(item, Message) and is_event(item):
            if self._form == "json":
                # JSON has line breaks only between tokens, so the lines can be joined.
                self._write(item.data.replace(b"\n", b" ") + b"\n")
            else:
                self._write(event_line(item.event, item.data, is_coloured=self._is_coloured).encode("utf-8", "replace") + b"\n")

    def flush(self) -> None:
        (self._binary or self._stream).flush()

    def _write(self, content: bytes) -> None:
        if self._binary is not None:
            self._binary.write(content)
        else:
            self._stream.write(content.decode("utf-8", "replace"))


class Notes:
    """Progress messages of the reader."""

    def __init__(self, stream: TextStream, credentials: Credentials, *, is_verbose: bool = False) -> None:
        self._stream = stream
        self._credentials = credentials
        self._is_verbose = is_verbose

    def say(self, text: str) -> None:
        self._stream.write(masked(text, self._credentials) + "\n")
        self._stream.flush()

    def detail(self, text: str) -> None:
        """Write a message that only `--verbose` shows."""
        if self._is_verbose:
            self.say(text)


def wants_colour(stream: Any, environment: dict[str, str] | os._Environ[str], *, forced: bool, refused: bool) -> bool:
    """Tell whether to use colors: the options decide first, then `NO_COLOR` (no-color.org: any non-empty value), then the type of
    output."""
    if forced or refused:
        return forced and not refused
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb" and bool(stream.isatty())


def discard_rest(stream: Any) -> None:
    """Redirect the stream to the null device, so that the interpreter's last flush does not fail on a closed pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
