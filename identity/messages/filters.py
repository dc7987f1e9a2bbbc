"""The filters of tenants' templates: the usual filters of Liquid, each with a limit on its output. Pure.

Safe HTML (`Markup`: the result of a capture) stays safe in filters that join and cut, because `Markup` escapes everything that is
added to it. A filter that decodes returns plain text, which is escaped again on output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from html import unescape
from typing import Any
from urllib.parse import quote_plus, unquote_plus

from markupsafe import Markup, escape

LONGEST_TEXT = 100_000
_MOST_ITEMS = 2_000
_LARGEST = 10**18
_TAG = re.compile(r"<[^<>]*>")
_DIRECTIVE = re.compile(r"%[-^0]?([a-zA-Z%])")
_KNOWN_DIRECTIVES = frozenset("aAbBdeHIjklmMpPSyYZzsFTDR%")


class Unbounded(Exception):
    """The template builds a text that is too long for a mail."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def _bounded(filter_: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(filter_)
    def checked(*arguments: Any) -> Any:
        found = filter_(*arguments)
        if isinstance(found, str | list) and len(found) > (LONGEST_TEXT if isinstance(found, str) else _MOST_ITEMS):
            raise Unbounded
        if isinstance(found, int | float) and not isinstance(found, bool) and abs(found) > _LARGEST:
            raise Unbounded
        return found

    return checked


def _text(value: Any) -> str:
    """Return a value as text. `Markup` stays `Markup`; null and undefined values are empty."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "".join(str(_text(item)) for item in value[:_MOST_ITEMS])
    return str(value) if isinstance(value, int | float) else ""


def _number(value: Any) -> int | float:
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        return value
    text = str(_text(value)).strip()[:40]
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return 0


def _items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    # The engine represents an undefined name as an empty mapping.
    return [value] if value or isinstance(value, int | float) else []


def _room(length: int) -> None:
    """Refuse a text that would be too long, before it is built."""
    if length > LONGEST_TEXT:
        raise Unbounded


def _append(value: Any, more: Any) -> str:
    return _text(value) + _text(more)


def _prepend(value: Any, more: Any) -> str:
    return _text(more) + _text(value)


def _replace(value: Any, old: Any, new: Any = "") -> str:
    text, sought, put = _text(value), str(_text(old)), _text(new)
    _room(len(text) + (text.count(sought) if sought else len(text) + 1) * max(len(put) * 6 - len(sought), 0))
    return text.replace(sought, put)


def _replace_first(value: Any, old: Any, new: Any = "") -> str:
    return _text(value).replace(str(_text(old)), _text(new), 1)


def _remove(value: Any, old: Any) -> str:
    return _replace(value, old, "")


def _remove_first(value: Any, old: Any) -> str:
    return _replace_first(value, old, "")


def _capitalize(value: Any) -> str:
    text = _text(value)
    return text[:1].upper() + text[1:]


def _truncate(value: Any, length: Any = 50, end: Any = "...") -> str:
    text, most, mark = _text(value), int(_number(length)), _text(end)
    return text if len(text) <= most else text[: max(most - len(mark), 0)] + mark


def _truncate_words(value: Any, count: Any = 15, end: Any = "...") -> str:
    text, most = _text(value), max(int(_number(count)), 1)
    words = text.split()
    return text if len(words) <= most else type(text)(" ").join(words[:most]) + _text(end)


def _slice(value: Any, start: Any, length: Any = 1) -> Any:
    whole = value if isinstance(value, list) else _text(value)
    begin = int(_number(start))
    begin = begin if begin >= 0 else max(len(whole) + begin, 0)
    return whole[begin : begin + max(int(_number(length)), 0)]


def _split(value: Any, separator: Any = " ") -> list[str]:
    text, mark = _text(value), str(_text(separator))
    return text.split(mark, _MOST_ITEMS) if mark else list(text[:_MOST_ITEMS])


def _join(value: Any, separator: Any = " ") -> str:
    texts, mark = [_text(item) for item in _items(value)], _text(separator)
    _room(sum(len(text) for text in texts) + len(mark) * len(texts))
    return mark.join(texts)


def _escape(value: Any) -> str:
    return escape(_text(value))


def _escape_once(value: Any) -> str:
    return escape(unescape(str(_text(value))))


def _newline_to_br(value: Any) -> str:
    return Markup("<br />\n").join(escape(_text(value)).splitlines())


def _strip_html(value: Any) -> str:
    return _TAG.sub("", str(_text(value)))


def _strip_newlines(value: Any) -> str:
    text = _text(value)
    return type(text)("").join(text.splitlines())


def _url_encode(value: Any) -> str:
    return quote_plus(str(_text(value)))


def _url_decode(value: Any) -> str:
    return unquote_plus(str(_text(value)))


def _divided_by(value: Any, divisor: Any) -> int | float:
    dividend, by = _number(value), _number(divisor)
    if not by:
        raise Unbounded("The template divides by zero.")
    return dividend // by if isinstance(dividend, int) and isinstance(by, int) else dividend / by


def _modulo(value: Any, divisor: Any) -> int | float:
    if not _number(divisor):
        raise Unbounded("The template divides by zero.")
    return _number(value) % _number(divisor)


def _round(value: Any, digits: Any = 0) -> int | float:
    places = min(max(int(_number(digits)), 0), 15)
    return round(_number(value), places) if places else round(_number(value))


def _date(value: Any, shape: Any = "%Y-%m-%d") -> str:
    """Return a time in another format. Only listed directives are accepted: C's `%100000000d` would fill the memory."""
    text, pattern = str(_text(value)), str(_text(shape))[:100]
    if any(found[1] not in _KNOWN_DIRECTIVES for found in _DIRECTIVE.finditer(pattern)) or "%" in _DIRECTIVE.sub("", pattern):
        raise Unbounded("The date filter does not support this format.")
    if isinstance(value, datetime):
        moment = value
    elif text in ("now", "today"):
        moment = datetime.now(UTC)
    elif re.fullmatch(r"\d{1,11}", text):
        moment = datetime.fromtimestamp(int(text), UTC)
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return text
    return moment.strftime(pattern)


def _sort(value: Any, member: Any = None) -> list[Any]:
    name = str(_text(member))
    return sorted(_items(value), key=lambda item: str(_text(item.get(name, "") if name and isinstance(item, dict) else item)))


def _map(value: Any, member: Any) -> list[Any]:
    return [item.get(str(_text(member))) for item in _items(value) if isinstance(item, dict)]


def _where(value: Any, member: Any, wanted: Any = True) -> list[Any]:  # noqa: FBT002  (the filter's own default)
    return [item for item in _items(value) if isinstance(item, dict) and item.get(str(_text(member))) == wanted]


def _uniq(value: Any) -> list[Any]:
    found: list[Any] = []
    for item in _items(value)[:200]:
        if item not in found:
            found.append(item)
    return found


def _default(value: Any, instead: Any = "") -> Any:
    is_empty = value is None or value is False or (not isinstance(value, int | float) and not len(value))
    return instead if is_empty else value


_UNBOUNDED: dict[str, Callable[..., Any]] = {
    "abs": lambda value: abs(_number(value)),
    "append": _append,
    "at_least": lambda value, bound: max(_number(value), _number(bound)),
    "at_most": lambda value, bound: min(_number(value), _number(bound)),
    "capitalize": _capitalize,
    "ceil": lambda value: -int(-_number(value) // 1),
    "compact": lambda value: [item for item in _items(value) if item is not None],
    "concat": lambda value, more: [*_items(value), *_items(more)],
    "date": _date,
    "default": _default,
    "divided_by": _divided_by,
    "downcase": lambda value: _text(value).lower(),
    "escape": _escape,
    "escape_once": _escape_once,
    "first": lambda value: next(iter(_items(value)), None),
    "floor": lambda value: int(_number(value) // 1),
    "join": _join,
    "last": lambda value: next(reversed(_items(value)), None),
    "lstrip": lambda value: _text(value).lstrip(),
    "map": _map,
    "minus": lambda value, other: _number(value) - _number(other),
    "modulo": _modulo,
    "newline_to_br": _newline_to_br,
    "plus": lambda value, other: _number(value) + _number(other),
    "prepend": _prepend,
    "remove": _remove,
    "remove_first": _remove_first,
    "replace": _replace,
    "replace_first": _replace_first,
    "reverse": lambda value: list(reversed(_items(value))),
    "round": _round,
    "rstrip": lambda value: _text(value).rstrip(),
    "size": lambda value: len(value) if isinstance(value, str | list | dict) else 0,
    "slice": _slice,
    "sort": _sort,
    "split": _split,
    "strip": lambda value: _text(value).strip(),
    "strip_html": _strip_html,
    "strip_newlines": _strip_newlines,
    "times": lambda value, other: _number(value) * _number(other),
    "truncate": _truncate,
    "truncatewords": _truncate_words,
    "uniq": _uniq,
    "upcase": lambda value: _text(value).upper(),
    "url_decode": _url_decode,
    "url_encode": _url_encode,
    "where": _where,
}
FILTERS: dict[str, Callable[..., Any]] = {name: _bounded(filter_) for name, filter_ in _UNBOUNDED.items()}
