"""One readable line per event: time, type, entity, and a summary of the change. Pure.

The line can contain texts from user profiles and is shown on an operator's terminal, so control characters are escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from events.client.failures import printable
from events.record.catalogue import DOCUMENT_KINDS

_IDENTITIES = {name: kind.identity for kind in DOCUMENT_KINDS for name in (kind.created, kind.updated, kind.deleted) if name}
# Fields by which an operator recognizes a user, a group or another entity of an event.
_LABELS = ("email", "display_name", "name", "username", "strategy", "phone_number")
_UNINTERESTING = frozenset({"updated_at"})
_LONGEST_VALUE = 40
_MOST_CHANGES = 3
_TYPE_WIDTH = 22

_DIM, _BOLD, _RESET = "\x1b[2m", "\x1b[1m", "\x1b[0m"
_COLOURS = {
    "created": "\x1b[32m",
    "added": "\x1b[32m",
    "assigned": "\x1b[32m",
    "updated": "\x1b[33m",
    "deleted": "\x1b[31m",
    "removed": "\x1b[31m",
}


def event_line(name: str, data: bytes, *, is_coloured: bool = False) -> str:
    """Return the line of one event. Shows unexpected data as far as possible; never raises."""
    try:
        envelope = json.loads(data)["event"]
        time, content = str(envelope["time"]), envelope["data"]
        thing, previous = dict(content["object"]), content.get("previous_object")
        is_test = any(key.endswith("purpose") for key in envelope)
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{'-':24}  {printable(name):{_TYPE_WIDTH}}  {printable(data[:200].decode('utf-8', 'replace'))}"
    said = _changes(previous, thing) if isinstance(previous, dict) else _label(name, thing)
    parts = [
        _painted(f"{printable(time):24}", _DIM, is_coloured),
        _painted(f"{printable(name):{_TYPE_WIDTH}}", _COLOURS.get(name.rpartition(".")[2], ""), is_coloured),
        _painted(printable(_entity(name, thing)), _BOLD, is_coloured),
        said,
        "(test)" if is_test else "",
    ]
    return "  ".join(part for part in parts if part)


def _painted(text: str, colour: str, is_coloured: bool) -> str:  # noqa: FBT001  (one switch, passed on)
    return f"{colour}{text}{_RESET}" if is_coloured and colour else text


def _entity(name: str, thing: dict[str, Any]) -> str:
    paths = _IDENTITIES.get(name, ("id",) if "id" in thing else ("user_id",))
    return " / ".join(str(_at(thing, path)) for path in paths)


def _at(thing: Any, path: str) -> Any:
    for member in path.split("."):
        thing = thing.get(member) if isinstance(thing, dict) else None
    return "?" if thing is None else thing


def _label(name: str, thing: dict[str, Any]) -> str:
    known = _IDENTITIES.get(name, ())
    return next((_shown(thing[field]) for field in _LABELS if isinstance(thing.get(field), str) and field not in known), "")


def _changes(before: dict[str, Any], after: dict[str, Any]) -> str:
    changes = [_change(path, old, new) for path, old, new in _differences(before, after)]
    more = len(changes) - _MOST_CHANGES
    return ", ".join(changes[:_MOST_CHANGES]) + (f", and {more} more" if more > 0 else "")


def _change(path: str, old: Any, new: Any) -> str:
    if old is None:
        return f"{printable(path)} {_shown(new)}"
    if new is None:
        return f"{printable(path)} gone"
    return f"{printable(path)} {_shown(old)} -> {_shown(new)}"


def _differences(before: dict[str, Any], after: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the differing fields in the order of the document.

    The members of an object are compared one by one; an object among these members is compared as a whole.
    """
    for field in [*after, *(field for field in before if field not in after)]:
        old, new = before.get(field), after.get(field)
        if old == new or field in _UNINTERESTING:
            continue
        if not prefix and isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{field}.")
        else:
            yield f"{prefix}{field}", old, new


def _shown(value: Any) -> str:
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
