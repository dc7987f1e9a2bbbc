"""Describes authorization details in words, for the consent page.

The text has three parts: the title and the sentence, both configured by the tenant, and a list of all members that the sentence omits. The
values come from a client. They are shown as text, without characters that change how the text around a value is displayed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from authapi.details.objects import Detail
from authapi.details.types import PLACEHOLDER, DetailType
from authapi.login.wish import Explanation, Passage

# Categories of control characters, direction marks and similar characters. These characters are replaced, because they could change how an
# amount looks.
_INVISIBLE = frozenset({"Cc", "Cf", "Co", "Cn", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
_REPLACEMENT = "\ufffd"
_MISSING = object()
_STEP = " \u203a "


def explained(detail: Detail, known: DetailType) -> Explanation:
    """Return one authorization detail in words.

    Members that the sentence omits are listed below the sentence, so that users see everything that they allow.
    """
    sentence, named = _sentence(detail, known.sentence)
    schema = known.schema or {}
    members = tuple((_label(path, schema), text) for path, text in _members(detail, ()) if path != ("type",) and path not in named)
    return Explanation(shown(known.title or known.name), sentence, members)


def shown(value: Any) -> str:
    """Return a plain value as text for users."""
    match value:
        case True:
            return _("Yes")
        case False:
            return _("No")
        case None:
            return _("None")
        case _:
            return "".join(_REPLACEMENT if _is_invisible(letter) else letter for letter in str(value))


def _is_invisible(letter: str) -> bool:
    return unicodedata.category(letter) in _INVISIBLE and letter not in _JOINERS


def _sentence(detail: Detail, template: str) -> tuple[tuple[Passage, ...], frozenset[tuple[str, ...]]]:
    """Return the sentence with its values, and the paths of the members in the sentence.

    Both are empty if a member that the sentence needs is missing.
    """
    if not template:
        return (), frozenset()
    passages: list[Passage] = []
    named: set[tuple[str, ...]] = set()
    for place, text in enumerate(PLACEHOLDER.split(template)):
        if place % 2 == 0:
            passages += [Passage(text)] if text else []
            continue
        value = _found(detail, text)
        plain = _plain(value)
        if plain is None:
            # A sentence with a missing value would mislead, so all members are listed instead.
            return (), frozenset()
        # The path is stored as a tuple, because a member may have a dot in its name.
        named.add(tuple(text.split(".")))
        passages.append(Passage(plain, is_value=True))
    return tuple(passages), frozenset(named)


def _found(value: Any, path: str) -> Any:
    for step in path.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return _MISSING
        value = value[step]
    return value


def _plain(value: Any) -> str | None:
    """Return a value as text; None for an object, and for a list that contains an object or a list."""
    if isinstance(value, list):
        texts = [None if isinstance(each, list) else _plain(each) for each in value]
        return ", ".join(text for text in texts if text is not None) if value and None not in texts else None
    if value is _MISSING or isinstance(value, Mapping):
        return None
    return shown(value)


def _members(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Return each plain member with its path. Elements of a list are numbered from 1."""
    plain = _plain(value)
    if plain is not None:
        yield path, plain
    elif not value:
        yield path, _("None")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _members(inner, (*path, name))
    else:
        for place, inner in enumerate(value, start=1):
            yield from _members(inner, (*path, str(place)))


def _label(path: tuple[str, ...], schema: Any) -> str:
    """Return the path to a member in words, with the titles in the schema."""
    labels = []
    for name in path:
        inner = _inner(schema, name)
        labels.append(str(inner.get("title") or _common(name)))
        schema = inner
    return _STEP.join(shown(label) for label in labels)


def _inner(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    properties = schema.get("properties")
    found = properties.get(name) if isinstance(properties, Mapping) else None
    if found is None and name.isdigit():
        found = schema.get("items")
    return found if isinstance(found, Mapping) else {}


def _common(name: str) -> str:
    """Return the label of a member that every type may have (RFC 9396, 2.2); any other member keeps its name."""
    match name:
        case "locations":
            return _("Where")
        case "actions":
            return _("Actions")
        case "datatypes":
            return _("Kinds of data")
        case "privileges":
            return _("Privileges")
        case "identifier":
            return _("Subject of the access")
        case _:
            return name
