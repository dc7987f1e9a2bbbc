"""Whether authorization details stay within others: what was granted, or what a user has allowed before (RFC 9396, 6.1). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from authapi.details.objects import LISTS, Detail


def all_within(asked: Iterable[Detail], allowed: Iterable[Detail]) -> bool:
    """Tell whether each of the objects asks for no more than one of those that are allowed."""
    present = tuple(allowed)
    return all(any(is_within(each, other) for other in present) for each in asked)


def is_within(asked: Detail, allowed: Detail) -> bool:
    """Tell whether an object asks for no more than another one.

    The lists that RFC 9396, 2.2 defines may be shorter. Every other member is the same: only its type knows what would be less. A member
    may not be left out either, since without it an object can mean everything.
    """
    return asked.keys() == allowed.keys() and all(_is_member_within(name, asked[name], allowed[name]) for name in asked)


def _is_member_within(name: str, asked: Any, allowed: Any) -> bool:
    if name in LISTS and asked:
        return set(asked) <= set(allowed)
    # As JSON: true is not 1, and 1 is not 1.0.
    return _encoded(asked) == _encoded(allowed)


def _encoded(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
