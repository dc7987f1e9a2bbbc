"""Compares requested authorization details with granted details, or with the details of a consent (RFC 9396, 6.1). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from authapi.details.objects import LISTS, Detail


def all_within(asked: Iterable[Detail], allowed: Iterable[Detail]) -> bool:
    """Tell whether each requested object is within one of the allowed objects."""
    present = tuple(allowed)
    return all(any(is_within(each, other) for other in present) for each in asked)


def is_within(asked: Detail, allowed: Detail) -> bool:
    """Tell whether an object requests no more than another object.

    The lists that RFC 9396, 2.2 defines may be shorter. Every other member must be equal: only the API can tell which of two values permits
    less. If a member is missing, or if a list has become empty, the result is False, because the API might read this as "everything".
    """
    return asked.keys() == allowed.keys() and all(_is_member_within(name, asked[name], allowed[name]) for name in asked)


def _is_member_within(name: str, asked: Any, allowed: Any) -> bool:
    if name in LISTS and asked:
        return set(asked) <= set(allowed)
    # Compared as JSON: true differs from 1, and 1 differs from 1.0.
    return _encoded(asked) == _encoded(allowed)


def _encoded(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
