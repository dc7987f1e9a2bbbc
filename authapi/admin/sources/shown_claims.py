"""Converts the claims of a provider to lists of names and texts, which a page shows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from authapi.upstream.sent_claims import ATTRIBUTES, CLAIMS, DOCUMENT, FORM, ID_TOKEN, NAME_ID, NAME_ID_FORMAT, USERINFO

Shown = list[tuple[str, list[tuple[str, str]]]]
_TITLES = {
    ID_TOKEN: "ID token",
    FORM: "Form sent by the browser",
    USERINFO: "Userinfo endpoint",
    DOCUMENT: "Profile",
    CLAIMS: "Claims after the mapping",
    ATTRIBUTES: "Assertion",
}
_NAMES = {NAME_ID: "NameID", NAME_ID_FORMAT: "Format of the NameID"}


def shown_claims(parts: Mapping[str, Any], *, most: int | None = None) -> Shown:
    """Return the title of each part and its claims, at most `most` of each part. A value that is not a string is shown as JSON."""
    named = [(title, parts[key]) for key, title in _TITLES.items() if isinstance(parts.get(key), Mapping)]
    found = [(title, list(_lines(claims))[:most]) for title, claims in named]
    subject = [(title, str(parts[key])) for key, title in _NAMES.items() if parts.get(key)]
    return [(title, [*subject, *lines]) for title, lines in found]


def _lines(claims: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each claim. The name of a nested member includes the names of its parents, such as `data.email`."""
    for name, value in claims.items():
        if isinstance(value, Mapping) and value:
            yield from _lines(value, f"{place}{name}.")
        elif isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            yield f"{place}{name}", ", ".join(value)
        else:
            yield f"{place}{name}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
