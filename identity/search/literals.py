"""Texts in a query: escapes, wildcards, names of fields. Pure."""

from __future__ import annotations

import re

from identity.search.queries import LETTERS_AFTER_LEADING_WILDCARD, MOST_WILDCARDS, Exact, Exists, InvalidSearch, Matcher, Pattern

_PIECES = re.compile(r"\\(.)|([*?.])|([^\\*?.]+)", re.DOTALL)
_MOST_PARTS = 12


def unescaped(text: str) -> str:
    """Return the text without its escapes: `\\` before a character means that character."""
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def parts_of(name: str) -> tuple[str, ...]:
    """Split the name of a field at its dots. An escaped dot is part of a name."""
    parts = [""]
    for escaped, mark, plain in _PIECES.findall(name):
        if mark == ".":
            parts.append("")
        elif mark:
            raise InvalidSearch(f"the name of a field has no wildcards: {name[:40]}")
        else:
            parts[-1] += escaped or plain
    if not all(parts) or len(parts) > _MOST_PARTS:
        raise InvalidSearch(f"{name[:40]} is not the name of a field")
    return tuple(parts)


def matcher_of(word: str) -> Matcher:
    """Return the matcher of a word without quotation marks: `Exists` for `*`, a `Pattern` if it has other wildcards, otherwise `Exact`."""
    pieces = [""]
    singles: list[bool] = []
    for escaped, mark, plain in _PIECES.findall(word):
        if mark in ("*", "?"):
            if mark == "*" and singles and not singles[-1] and not pieces[-1]:
                # Two stars in sequence mean the same as one star.
                continue
            singles.append(mark == "?")
            pieces.append("")
        else:
            pieces[-1] += escaped or mark or plain
    if not singles:
        return Exact(pieces[0])
    return Exists() if pieces == ["", ""] and not singles[0] else _checked(Pattern(tuple(pieces), tuple(singles)))


def _checked(pattern: Pattern) -> Pattern:
    if len(pattern.singles) > MOST_WILDCARDS:
        raise InvalidSearch(f"{pattern.written[:40]} has more than {MOST_WILDCARDS} wildcards")
    # Trigrams consist of letters and digits; a pattern of punctuation would read the whole index.
    if not pattern.pieces[0] and max(sum(map(str.isalnum, piece)) for piece in pattern.pieces) < LETTERS_AFTER_LEADING_WILDCARD:
        raise InvalidSearch(
            f"{pattern.written[:40]} begins with a wildcard, so it needs a part without wildcards that has"
            f" {LETTERS_AFTER_LEADING_WILDCARD} letters or digits"
        )
    return pattern
