"""Turns errors of request bodies into sentences for forms of the admin. The API returns the original texts, which clients compare. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SENTENCES = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (r"Object didn't pass validation for format (uri|url|strict-uri)", "Enter a full address, such as https://app.example.com/start."),
        (r"Object didn't pass validation for format email", "Enter an email address, such as ada@example.com."),
        (r"Object didn't pass validation for format date-time", "Enter a date and a time, such as 2030-01-31T12:00:00Z."),
        (r"String is too short \(0 chars\), minimum 1", "Enter a value."),
        (r"Array is too short, minimum (\d+)", r"Enter more values. The minimum is \1."),
        (r"String does not match pattern \^\[\^<>\][+*]\$", "Remove the characters < and >."),
        (r"String does not match pattern \^#\[0-9a-fA-F\]\{6\}\$", "Enter a color of six hexadecimal digits, such as #1a2b3c."),
        (r"String does not match pattern of a language", "Enter the code of a language, such as en or pt-BR."),
        (r"Expected an https address", "Enter an address that begins with https://."),
        (r"Expected strings of at most 255 characters, or null", "Enter at most 255 characters in each field."),
        (r"Expected no spaces", "Remove the spaces."),
        (r"Expected type integer", "Enter a whole number."),
        (r"Expected type number", "Enter a number."),
        (r"Expected type string", "Enter text."),
    )
)


def sentence_of(text: str) -> str:
    """Return the sentence for an error text. For an unknown text, return the text with a period at its end."""
    for pattern, sentence in _SENTENCES:
        if match := pattern.fullmatch(text):
            return match.expand(sentence)
    return f"{text.removesuffix('.')}."


def sentences_of(problem: Any) -> list[str]:
    """Return the sentences for the errors of a request body. The position in a list is shown as a line of the field, counted from 1."""
    if isinstance(problem, Mapping):
        return [
            f"In line {place + 1}: {sentence}" if isinstance(place, int) else f"{place}: {sentence}"
            for place, inner in problem.items()
            for sentence in sentences_of(inner)
        ]
    return [sentence for inner in problem for sentence in sentences_of(inner)] if isinstance(problem, list) else [sentence_of(str(problem))]
