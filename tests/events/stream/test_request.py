"""Reading what a subscriber asked for; the refusals themselves are in the conformance tests."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.stream.request import InvalidQuery, Wanted, parse_moment, read_wanted

KNOWN = frozenset({"user.created", "user.deleted"})


def _read(query: bytes, *headers: bytes) -> Wanted:
    return read_wanted(query, headers, known_types=KNOWN)


def test_nothing_asked_for_is_now_and_everything() -> None:
    assert _read(b"") == Wanted(None, None, None)
    assert _read(b"from=&from_timestamp=&event_type=", b"  ") == Wanted(None, None, None)


def test_types_repeat_and_are_a_set() -> None:
    assert _read(b"event_type=user.created&event_type=user.deleted&event_type=user.created").types == KNOWN


def test_a_cursor_wins_in_the_order_header_query_moment() -> None:
    assert _read(b"from=a&from_timestamp=2026-01-01T00:00:00Z", b"h").cursor == "h"
    assert _read(b"from_timestamp=2026-01-01T00:00:00Z", b"h") == Wanted("h", None, None)
    assert _read(b"from=a").cursor == "a"


@pytest.mark.parametrize("query", [b"from=a&from=", b"from=&from=", b"From=a", b"event_type[]=user.created", b"from_timestamp=x", b"%ff=1"])
def test_what_is_not_understood_is_refused(query: bytes) -> None:
    with pytest.raises(InvalidQuery):
        _read(query)


def test_a_bad_timestamp_is_refused_even_where_the_header_wins() -> None:
    with pytest.raises(InvalidQuery):
        _read(b"from_timestamp=yesterday", b"h")


def test_a_repeated_header_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="Last-Event-ID"):
        _read(b"", b"a", b"b")


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9998, 1, 1)))  # noqa: DTZ001  (hypothesis wants naive bounds)
def test_every_second_is_read_back(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    text = f"{moment.year:04d}" + moment.strftime("-%m-%dT%H:%M:%SZ")
    assert parse_moment(text) == parse_moment(text.lower()) == moment


def test_a_leap_second_is_the_second_after() -> None:
    assert parse_moment("2016-12-31T23:59:60Z") == datetime(2017, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "\uff12026-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01 00:00:00Z"]
)
def test_a_moment_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery):
        parse_moment(text)


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_arbitrary_bytes_are_read_or_refused(query: bytes, header: bytes) -> None:
    with suppress(InvalidQuery):
        assert (_read(query, header).types or KNOWN) <= KNOWN
