"""Phone numbers in one spelling: E.164, a plus sign and up to 15 digits."""

from __future__ import annotations

import re

_E164 = re.compile(r"\+[1-9][0-9]{5,14}")
_PUNCTUATION = re.compile(r"[\s().\-/]")


def read_number(typed: str, *, region: str = "") -> str | None:
    """Return a number as E.164, None for a text that is none."""
    number = _PUNCTUATION.sub("", typed)
    return number if _E164.fullmatch(number) else None
