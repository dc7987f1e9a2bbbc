"""Errors of request bodies as sentences for the forms of the admin."""

from __future__ import annotations

from typing import Any

import pytest

from foundation.admin.body_errors import sentences_of

_ADDRESS = "Enter a full address, such as https://app.example.com/start."


@pytest.mark.parametrize(
    ("problem", "sentences"),
    [
        (["Object didn't pass validation for format uri"], [_ADDRESS]),
        ({0: ["Object didn't pass validation for format uri"], 2: ["Wrong", "Worse."]},
         [f"In line 1: {_ADDRESS}", "In line 3: Wrong.", "In line 3: Worse."]),
        ({"leeway": ["Expected type integer"]}, ["leeway: Enter a whole number."]),
        (["String does not match pattern ^[^<>]+$"], ["Remove the characters < and >."]),
        (["Array is too short, minimum 3"], ["Enter more values. The minimum is 3."]),
        ("Ensure this value is at least 10.", ["Ensure this value is at least 10."]),
    ],
)  # fmt: skip
def test_each_error_becomes_a_sentence_with_its_line(problem: Any, sentences: list[str]) -> None:
    assert sentences_of(problem) == sentences
