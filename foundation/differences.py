"""The differences between two documents, field by field, for people. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """A changed field: its path, and its values before and after as JSON. A value is None if the document lacks the field."""

    path: str
    before: str | None
    after: str | None


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Yield the differences in the order of the later document, removed fields last. Lists are compared as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*after, *(name for name in before if name not in after)]:
            yield from _field(before, after, name, f"{path}.{name}" if path else str(name))
    elif not _is_same(before, after):
        yield Difference(path, _text(before), _text(after))


def value_text(value: Any) -> str:
    """Return a value of a document as text: strings unchanged, everything else as JSON; "Not set" without a value."""
    return "Not set" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _field(before: dict[str, Any], after: dict[str, Any], name: str, path: str) -> Iterator[Difference]:
    if name not in before:
        yield Difference(path, None, _text(after[name]))
    elif name not in after:
        yield Difference(path, _text(before[name]), None)
    else:
        yield from differences(before[name], after[name], path)


def _is_same(before: Any, after: Any) -> bool:
    # Compare the JSON texts: in Python, True == 1 and 1.0 == 1, but in JSON these values differ.
    return _text(before) == _text(after)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
