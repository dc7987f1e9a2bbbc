"""What of a request to the management interface may stand in the administrative log: everything but secrets. Pure.

The rules are those of the audit log (`foundation.secrets.hidden_values`), and stricter where a body says things that no column holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from foundation.json_values import storable
from foundation.secrets.hidden_values import HIDDEN, is_secret, shown

# A page of the log holds 100 lines.
LONGEST_BODY = 8_000
LONGEST_PATH = 1_000
_LONGEST_QUERY = 2_000
_MOST_NAMES = 50
# Options and secrets have schemas of their own, which only their service knows (docs/adr/0075). `link_with` is a token,
# `ids` may be tokens that the caller took for ids, and `data` is an event.
_NAMES_ONLY = frozenset({"options", "secrets", "addons", "link_with", "ids", "data", "pem"})
# A JSON web token, a private key, and text as long as a secret of a client: hidden under any name.
_LOOKS_SECRET = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]*\.[\w-]*|-----BEGIN [A-Z0-9 ]*PRIVATE KEY|\b[Bb]earer\s+\S+|[a-z][a-z0-9+.-]*://[^/?#\s]*@"
)
# An opaque token has 43 characters of base64 at least; the ids of this service are shorter, those of users hold a `|`.
_OPAQUE = re.compile(r"[\w-]{43,}")


def noted_body(body: Any) -> Any:
    """Return a body, which has passed its checks, without secrets; None where nothing of it is kept.

    Of a body longer than `LONGEST_BODY` characters only the names of its members are kept.
    """
    kept = _noted("", body)
    return _cut(kept, LONGEST_BODY) if isinstance(kept, dict | list) and kept else None


def noted_query(query: Iterable[tuple[str, list[str]]]) -> dict[str, Any]:
    """Return the parameters of a query without secrets; one that was sent several times is a list."""
    named = list(query)[:_MOST_NAMES]
    kept: dict[str, Any] = _cut(
        {noted_text(name)[:64]: _noted(name, values[0] if len(values) == 1 else values) for name, values in named}, _LONGEST_QUERY
    )
    return kept


def noted_path(path: str) -> str:
    """Return a path as it was sent, cut to `LONGEST_PATH`, without segments that look like tokens."""
    segments = path[: LONGEST_PATH + 1].split("/")
    return "/".join(map(noted_text, segments))[:LONGEST_PATH]


def noted_text(text: str) -> str:
    """Return a name or an id as it can be stored, hidden where it looks like a token."""
    return HIDDEN if _OPAQUE.fullmatch(text) or _LOOKS_SECRET.search(text) else storable(text)


def noted_message(message: str) -> str:
    """Return the text of an error without what looks like a token: some refusals repeat the value that they refuse."""
    return _LOOKS_SECRET.sub(HIDDEN, _OPAQUE.sub(HIDDEN, message))


def _cut(kept: dict[str, Any] | list[Any], longest: int) -> Any:
    """Return the names of the members only where the whole is longer than `longest` characters."""
    length = len(json.dumps(kept))
    if length <= longest:
        return kept
    too_long = f"(not kept: {length} characters)"
    return dict.fromkeys(list(kept)[:_MOST_NAMES], too_long) if isinstance(kept, dict) else [too_long]


def _noted(name: str, value: Any) -> Any:
    """Return `value` as JSON that can be stored, what is secret in it hidden."""
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
    # What is no JSON, such as a file, has no place in a log.
    return shown(name, value) if value is None or isinstance(value, bool | int | float | str | list) else HIDDEN


def _names_of(value: Any) -> Any:
    """Return the names of the members of an object; switches and numbers keep their values."""
    if isinstance(value, Mapping):
        return {storable(str(name))[:64]: _names_of(member) for name, member in value.items()}
    return value if value is None or isinstance(value, bool | int | float) else HIDDEN
