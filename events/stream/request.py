"""The parameters of a subscription, parsed strictly from the query string and the headers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl

MAX_FROM_LENGTH = 1024
MAX_FROM_TIMESTAMP_LENGTH = 20
_SINGLE_VALUED = ("from", "from_timestamp")
_PARAMETERS = frozenset({*_SINGLE_VALUED, "event_type"})
MOMENT_PATTERN = "^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}):([0-9]{2})[Zz]$"
_MOMENT = re.compile(MOMENT_PATTERN)


class InvalidQuery(ValueError):
    """The query string is invalid; the message names the parameter."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A valid request: the start, and the types. A cursor takes precedence over a time."""

    cursor: str | None
    moment: datetime | None
    types: frozenset[str] | None


def read_wanted(query: bytes, last_event_ids: Iterable[bytes], *, known_types: Set[str]) -> Wanted:
    """Parse a request. `Last-Event-ID` takes precedence over `from` and `from_timestamp`; an empty value is treated as absent.

    Raises `InvalidQuery`.
    """
    values = _query_values(query)
    types = _types(values["event_type"], known_types)
    moment = parse_moment(values["from_timestamp"][0]) if values["from_timestamp"] else None
    start = values["from"][0] if values["from"] else None
    if start is not None and len(start) > MAX_FROM_LENGTH:
        raise InvalidQuery(f"The parameter `from` has more than {MAX_FROM_LENGTH} characters.")
    header = _last_event_id(last_event_ids)
    # A client that reconnects repeats its first query and adds the header, so `from` and `from_timestamp` conflict only in a request
    # without the header.
    if header is not None:
        return Wanted(header, None, types)
    if start is not None and moment is not None:
        raise InvalidQuery("The parameters `from` and `from_timestamp` exclude each other.")
    return Wanted(start, moment, types)


def parse_moment(text: str) -> datetime:
    """Parse an RFC 3339 time with `Z` and at most 20 characters, which leave no room for a fraction. Raises `InvalidQuery`."""
    if len(text) > MAX_FROM_TIMESTAMP_LENGTH:
        raise InvalidQuery(f"The parameter `from_timestamp` has more than {MAX_FROM_TIMESTAMP_LENGTH} characters.")
    found = _MOMENT.fullmatch(text)
    try:
        if found is None:
            raise InvalidQuery("The parameter `from_timestamp` is not of the form YYYY-MM-DDTHH:MM:SSZ.")
        day, minute, second = found.groups()
        # A leap second has the seconds value 60 (RFC 3339, 5.7); use the following second instead.
        leap = second == "60"
        moment = datetime.strptime(f"{day}T{minute}:{'59' if leap else second}Z", "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        return moment + timedelta(seconds=leap)
    except (ValueError, OverflowError) as error:
        raise InvalidQuery("The parameter `from_timestamp` is not of the form YYYY-MM-DDTHH:MM:SSZ.") from error


def _query_values(query: bytes) -> dict[str, list[str]]:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=200)
    except (UnicodeError, ValueError) as error:
        raise InvalidQuery("The query string cannot be read.") from error
    unknown = sorted({name for name, _ in pairs} - _PARAMETERS)
    if unknown:
        raise InvalidQuery(f"Unknown query parameters: {', '.join(_shown(name) for name in unknown)}.")
    repeated = [name for name in _SINGLE_VALUED if sum(found == name for found, _ in pairs) > 1]
    if repeated:
        raise InvalidQuery(f"These query parameters may be given only once: {', '.join(repeated)}.")
    return {name: [value for found, value in pairs if found == name and value] for name in _PARAMETERS}


def _types(values: list[str], known: Set[str]) -> frozenset[str] | None:
    unknown = sorted(set(values) - known)
    if unknown:
        raise InvalidQuery(f"Unsupported event types: {', '.join(_shown(name) for name in unknown)}.")
    return frozenset(values) if values else None


def _last_event_id(values: Iterable[bytes]) -> str | None:
    given = [value.decode("latin-1").strip() for value in values]
    if len(given) > 1:
        raise InvalidQuery("The header `Last-Event-ID` may be given only once.")
    return given[0] if given and given[0] else None


def _shown(name: str) -> str:
    return name if len(name) <= 64 and name.isprintable() else repr(name[:64])
