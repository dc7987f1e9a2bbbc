"""The parts of a management request that the administrative log may contain: everything except secrets. Pure.

Uses the rules of the audit log (`foundation.secrets.hidden_values`). Some members of request bodies, such as `link_with`,
have stricter rules (`_NAMES_ONLY`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from foundation.json_values import storable
from foundation.secrets.hidden_values import HIDDEN, is_secret, shown

# Maximum number of characters of a stored body. A page of `GET /logs` has up to 100 lines, each with a body.
LONGEST_BODY = 8_000
LONGEST_PATH = 1_000
_LONGEST_QUERY = 2_000
_MOST_NAMES = 50
# A line contains only the names, booleans and numbers of these members. Only the services have the schemas of `options` and `secrets`
# (docs/adr/0075), so this module cannot tell which values are secret. `link_with` is a token. A client may send tokens in `ids` by mistake.
# `data` contains an event.
_NAMES_ONLY = frozenset({"options", "secrets", "addons", "link_with", "ids", "data", "pem"})
# Texts that look like JSON web tokens, private keys, bearer tokens or addresses with credentials are hidden. The name of the member does
# not matter.
_LOOKS_SECRET = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]*\.[\w-]*|-----BEGIN [A-Z0-9 ]*PRIVATE KEY|\b[Bb]earer\s+\S+|[a-z][a-z0-9+.-]*://[^/?#\s]*@"
)
# An opaque token has at least 43 characters of base64. Ids do not match: ids of this service are shorter, and ids of users contain `|`.
_OPAQUE = re.compile(r"[\w-]{43,}")


def noted_body(body: Any) -> Any:
    """Return a validated body without secrets. Return None if nothing of the body is kept.

    If the body is longer than `LONGEST_BODY` characters, only the names of its members are kept.
    """
    kept = _noted("", body)
    return _cut(kept, LONGEST_BODY) if isinstance(kept, dict | list) and kept else None


def noted_query(query: Iterable[tuple[str, list[str]]]) -> dict[str, Any]:
    """Return the parameters of a query without secrets. A repeated parameter becomes a list."""
    named = list(query)[:_MOST_NAMES]
    kept: dict[str, Any] = _cut(
        {noted_text(name)[:64]: _noted(name, values[0] if len(values) == 1 else values) for name, values in named}, _LONGEST_QUERY
    )
    return kept


def noted_path(path: str) -> str:
    """Return a path as it was sent, cut to `LONGEST_PATH`, with segments that look like tokens hidden."""
    segments = path[: LONGEST_PATH + 1].split("/")
    return "/".join(map(noted_text, segments))[:LONGEST_PATH]


def noted_text(text: str) -> str:
    """Return a name or an id without characters that the database cannot store. A text that looks like a token is hidden."""
    return HIDDEN if _OPAQUE.fullmatch(text) or _LOOKS_SECRET.search(text) else storable(text)


def noted_message(message: str) -> str:
    """Return an error text without the parts that look like tokens, because some errors repeat the refused value."""
    return _LOOKS_SECRET.sub(HIDDEN, _OPAQUE.sub(HIDDEN, message))


def _cut(kept: dict[str, Any] | list[Any], longest: int) -> Any:
    """Return `kept` if its JSON has at most `longest` characters. Otherwise return only the names of its members or, for a list, a note."""
    length = len(json.dumps(kept))
    if length <= longest:
        return kept
    too_long = f"(not kept: {length} characters)"
    return dict.fromkeys(list(kept)[:_MOST_NAMES], too_long) if isinstance(kept, dict) else [too_long]


def _noted(name: str, value: Any) -> Any:
    """Return `value` as JSON that can be stored, with secrets hidden."""
    if name in _NAMES_ONLY:
        return _names_of(value)
    if isinstance(value, Mapping):
        if "kty" in value or is_secret(name):
            return shown(name, dict(value))
        return {storable(str(inner))[:64]: _noted(str(inner), member) for inner, member in value.items()}
    if isinstance(value, list) and not is_secret(name):
        return [_noted("", member) for member in value]
    if isinstance(value, str) and not is_secret(name):
        return storable(shown(name, noted_text(value)))
    # Values that are not JSON, such as files, are not logged.
    return shown(name, value) if value is None or isinstance(value, bool | int | float | str | list) else HIDDEN


def _names_of(value: Any) -> Any:
    """Return an object with the names of its members and with its booleans and numbers. All other values are hidden."""
    if isinstance(value, Mapping):
        return {storable(str(name))[:64]: _names_of(member) for name, member in value.items()}
    return value if value is None or isinstance(value, bool | int | float) else HIDDEN
