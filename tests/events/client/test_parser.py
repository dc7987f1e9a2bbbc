"""The client's parser of event streams follows the standard, and gives the same result for every split of the bytes."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.client.parser import BlockTooLarge, Bookmark, Comment, EventStreamParser, Item, Message, Retry
from events.stream import frames
from events.stream.lag import Lag
from tests.conformance.reader import _parsed

Said = tuple[object, ...]


def parse(*pieces: bytes) -> list[Item]:
    parser = EventStreamParser()
    return [item for piece in pieces for item in parser.feed(piece)]


def said(items: list[Item]) -> list[Said]:
    """Return items without their bytes."""
    shown: list[Said] = []
    for item in items:
        match item:
            case Message(event, data, last_id):
                shown.append(("message", event, data, last_id))
            case Bookmark(last_id):
                shown.append(("bookmark", last_id))
            case Comment(text):
                shown.append(("comment", text))
            case Retry(milliseconds):
                shown.append(("retry", milliseconds))
    return shown


def read_at_once(stream: bytes) -> list[Said]:  # noqa: C901  (the cases of the standard, one after the other)
    """Parse a whole body by the algorithm of the standard, written for clarity instead of speed."""
    stream = stream.removeprefix(b"\xef\xbb\xbf")
    *lines, _unfinished = re.split(rb"\r\n|\n|\r", stream)
    found: list[Said] = []
    last_id, id_buffer, event, data = b"", b"", b"", b""
    for line in lines:
        if line == b"":
            if data:
                found.append(("message", event.decode(errors="replace") or "message", data[:-1], id_buffer.decode(errors="replace")))
            elif id_buffer.decode(errors="replace") != last_id.decode(errors="replace"):
                found.append(("bookmark", id_buffer.decode(errors="replace")))
            last_id, event, data = id_buffer, b"", b""
        elif line.startswith(b":"):
            found.append(("comment", line[1:].removeprefix(b" ").decode(errors="replace")))
        else:
            name, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if name == b"data":
                data += value + b"\n"
            elif name == b"event":
                event = value
            elif name == b"id" and b"\0" not in value:
                id_buffer = value
            elif name == b"retry" and re.fullmatch(rb"[0-9]+", value):
                found.append(("retry", int(value)))
    return found


LINES = """
data|data: a|data:|data:  b|event: user.created|event:|id|id: 7|id: \0|retry: 250|retry: 2x|retry:|x: y|: heartbeat|:|é|\0
"""
PIECES = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"\xef\xbb\xbf", b"\xff", *LINES.strip().encode().split(b"|")]), max_size=30
).map(b"".join)


@given(PIECES)
def test_any_bytes_are_parsed_as_the_standard_requires(stream: bytes) -> None:
    assert said(parse(stream)) == read_at_once(stream)


@given(PIECES)
def test_splitting_the_bytes_anywhere_does_not_change_the_result(stream: bytes) -> None:
    whole = parse(stream)
    assert parse(*(bytes([byte]) for byte in stream)) == whole
    for cut in range(len(stream) + 1):
        assert parse(stream[:cut], stream[cut:]) == whole


@given(PIECES, st.integers(min_value=0, max_value=200))
def test_the_bytes_of_all_items_together_are_the_received_bytes(stream: bytes, cut: int) -> None:
    parser = EventStreamParser()
    items = [item for piece in (stream[:cut], stream[cut:]) for item in parser.feed(piece)]
    raw = b"".join(item.raw for item in items) + parser.pending
    # A byte order mark at the start of the stream belongs to the first item.
    assert raw == stream


def test_the_parser_and_the_test_reader_agree_on_a_stream_of_the_service() -> None:
    event = b'event: user.created\nid: abc\ndata: {"type":"user.created","offset":"abc","event":{}}\n\n'
    stream = frames.opening(2000, "start") + event + frames.heartbeat("later", Lag(7, 0, 0)) + frames.error("timeout", "Too slow.", "later")
    seen: list[Said] = []
    last_id = ""
    for text in stream.decode().removesuffix("\n\n").split("\n\n"):
        block = _parsed(text)
        seen += [("comment", comment) for comment in block.comments]
        seen += [("retry", int(block.retry))] if block.retry else []
        last_id = block.id or last_id
        seen += [("message", block.event, block.data.encode(), last_id)] if block.data else []
    assert said(parse(stream)) == seen


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        # WHATWG HTML, 9.2.6, the examples in their order.
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("message", "message", b"YHOO\n+2\n10", "")]),
        (
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n",
            [("comment", "test stream"), ("message", "message", b"first event", "1"), ("message", "message", b"second event", "")],
        ),
        (b"data\n\ndata\ndata\n\ndata:", [("message", "message", b"", ""), ("message", "message", b"\n", "")]),
        (b"data:test\n\ndata: test\n\n", [("message", "message", b"test", "")] * 2),
        # An id without data dispatches no event but becomes the last event id.
        (b"id: 9\n\ndata: x\n\n", [("bookmark", "9"), ("message", "message", b"x", "9")]),
        (b"id: 1\ndata: x\n\nid: 2\0\ndata: y\n\n", [("message", "message", b"x", "1"), ("message", "message", b"y", "1")]),
        (b"retry: 10\nretry: -1\nretry: 1.5\n", [("retry", 10)]),
        (b"retry: " + b"9" * 5000 + b"\n", [("retry", 999_999_999_999)]),
    ],
)
def test_the_examples_of_the_standard_are_parsed_as_documented(stream: bytes, expected: list[Said]) -> None:
    assert said(parse(stream)) == expected


def test_an_incomplete_block_does_not_advance_the_cursor() -> None:
    block = b"event: user.created\nid: abc\ndata: {}\n\n"
    for cut in range(len(block)):
        assert parse(block[:cut]) == []


def test_a_block_above_the_size_limit_is_refused() -> None:
    parser = EventStreamParser(max_bytes=1000)
    lines = (b"data: " + b"x" * 100 + b"\n" for _ in range(20))
    with pytest.raises(BlockTooLarge):
        list(chain.from_iterable(parser.feed(line) for line in lines))


def test_a_new_connection_starts_with_the_id_of_the_previous_connection() -> None:
    parser = EventStreamParser(last_id="before")
    assert [item.id for item in parser.feed(b"data: x\n\n") if isinstance(item, Message)] == ["before"]
