"""Parsing of a subscription's parameters. The conformance tests cover the refusals."""

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


def test_a_stream_without_parameters_starts_now_with_every_type() -> None:
    assert _read(b"") == Wanted(None, None, None)
    assert _read(b"from=&from_timestamp=&event_type=", b"  ") == Wanted(None, None, None)


def test_the_type_parameter_can_be_repeated_and_gives_a_set() -> None:
    assert _read(b"event_type=user.created&event_type=user.deleted&event_type=user.created").types == KNOWN


def test_last_event_id_has_precedence_over_the_cursor_and_the_cursor_over_the_time() -> None:
    assert _read(b"from=a&from_timestamp=2026-01-01T00:00:00Z", b"h").cursor == "h"
    assert _read(b"from_timestamp=2026-01-01T00:00:00Z", b"h") == Wanted("h", None, None)
    assert _read(b"from=a").cursor == "a"


@pytest.mark.parametrize("query", [b"from=a&from=", b"from=&from=", b"From=a", b"event_type[]=user.created", b"from_timestamp=x", b"%ff=1"])
def test_invalid_parameters_are_refused(query: bytes) -> None:
    with pytest.raises(InvalidQuery):
        _read(query)


def test_an_invalid_timestamp_is_refused_even_if_last_event_id_is_sent() -> None:
    with pytest.raises(InvalidQuery):
        _read(b"from_timestamp=yesterday", b"h")


def test_a_repeated_header_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="Last-Event-ID"):
        _read(b"", b"a", b"b")


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9998, 1, 1)))  # noqa: DTZ001  (hypothesis wants naive bounds)
def test_every_time_in_whole_seconds_is_parsed(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    text = f"{moment.year:04d}" + moment.strftime("-%m-%dT%H:%M:%SZ")
    assert parse_moment(text) == parse_moment(text.lower()) == moment


def test_a_leap_second_is_read_as_the_following_second() -> None:
    assert parse_moment("2016-12-31T23:59:60Z") == datetime(2017, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "\uff12026-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01 00:00:00Z"]
)
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery):
        parse_moment(text)


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_arbitrary_bytes_are_parsed_or_refused(query: bytes, header: bytes) -> None:
    with suppress(InvalidQuery):
        assert (_read(query, header).types or KNOWN) <= KNOWN
