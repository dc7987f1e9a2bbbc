"""Trace contexts (the ids of a trace and a span) are read from headers, stored as 24 bytes, and read from stored bytes."""

from __future__ import annotations

import pytest

from foundation.tracing.trace_context import TraceContext, read_header, read_stored

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = TraceContext(int(TRACE, 16), int(SPAN, 16))


@pytest.mark.parametrize("text", [f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00", f"cc-{TRACE}-{SPAN}-01", f"cc-{TRACE}-{SPAN}-01-what"])
def test_the_ids_of_a_valid_header_are_read_with_any_flags(text: str) -> None:
    assert read_header(text) == CONTEXT


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0\u0661",
        f"cc-{TRACE}-{SPAN}-01-{'x' * 300}",
    ],
)
def test_no_ids_are_read_from_an_invalid_header(text: str) -> None:
    assert read_header(text) is None


def test_stored_ids_are_24_bytes_and_can_be_read_again() -> None:
    assert len(CONTEXT.stored()) == 24
    assert read_stored(CONTEXT.stored()) == CONTEXT


@pytest.mark.parametrize("stored", [b"", b"\0" * 24, b"x" * 23, b"x" * 25, b"\0" * 16 + b"x" * 8])
def test_no_context_is_read_from_malformed_bytes(stored: bytes) -> None:
    assert read_stored(stored) is None
