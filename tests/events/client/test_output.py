"""The choice between colored and plain output."""

from __future__ import annotations

import io

import pytest

from events.client.output import Output, wants_colour
from events.client.parser import Message


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "forced", "refused", "expected"),
    [
        (Terminal(), {}, False, False, True),
        (io.StringIO(), {}, False, False, False),
        (io.StringIO(), {}, True, False, True),
        (Terminal(), {}, False, True, False),
        (Terminal(), {"NO_COLOR": "1"}, False, False, False),
        # no-color.org: an empty value is treated like no value.
        (Terminal(), {"NO_COLOR": ""}, False, False, True),
        (Terminal(), {"TERM": "dumb"}, False, False, False),
    ],
)
def test_color_is_used_for_terminals_and_on_request(
    stream: io.StringIO, environment: dict[str, str], forced: bool, refused: bool, expected: bool
) -> None:
    assert wants_colour(stream, environment, forced=forced, refused=refused) is expected


def test_json_from_several_data_lines_is_printed_as_one_line() -> None:
    stream = io.StringIO()
    Output(stream, form="json", is_coloured=True).take(Message("user.created", b'{"a":\n1}', "x", b""))
    assert stream.getvalue() == '{"a": 1}\n'
