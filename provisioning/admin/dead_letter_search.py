"""Parses the query of the list of dead letters, so that list, export and redelivery select the same dead letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.http import urlencode

from foundation.ids import EVENT_ID_PATTERN, STREAM_ID_PATTERN
from provisioning.dead_letters.selections import Selection
from provisioning.models import DeadLetter, FailureClass

# Parameters for pages and layout, which do not change the selection.
_NO_FILTERS = frozenset({"p", "o", "all", "_popup", "list", "format", "csrfmiddlewaretoken"})
_FINGERPRINT_LENGTH = 32
_MOST_STATUS = 2**31 - 1


class FilterNotUnderstood(ValueError):
    """This filter is not supported. Use only the filters beside the list."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@dataclass(frozen=True)
class Search:
    """A filter of the list: at most one stream, and conditions on dead letters."""

    stream_id: str = ""
    selection: Selection = field(default_factory=Selection)

    def rows(self, letters: QuerySet[DeadLetter]) -> QuerySet[DeadLetter]:
        """Return those of the dead letters that match the filter."""
        if self.stream_id:
            letters = letters.filter(stream_id=self.stream_id)
        if self.selection.states:
            letters = letters.filter(state__in=self.selection.states)
        return self.selection.narrow(letters)


def search_of(query: Mapping[str, str]) -> Search:
    """Parse the query of the list; raise `FilterNotUnderstood` for an unknown filter."""
    search = Search()
    for name, value in query.items():
        if name in _NO_FILTERS or value == "":
            continue
        if name not in _READERS:
            raise FilterNotUnderstood
        search = _READERS[name](search, value)
    return search


def address_of(**parts: str) -> str:
    """Return the query string with which the list has these filters."""
    return urlencode({name: value for name, value in parts.items() if value})


def searched(letters: QuerySet[DeadLetter], term: str) -> QuerySet[DeadLetter]:
    """Return those of the dead letters that match a term of the search field."""
    return _term(Search(), term).rows(letters) if term.strip() else letters


def _term(search: Search, value: str) -> Search:
    """Narrow the search by a term. The format of an id shows what it identifies; a term that is no id is an entity."""
    term = value.strip()
    if STREAM_ID_PATTERN.fullmatch(term):
        return _stream(search, term)
    if EVENT_ID_PATTERN.fullmatch(term):
        return _narrowed(search, event_id=term)
    if len(term) == _FINGERPRINT_LENGTH and not set(term) - set("0123456789abcdef"):
        return _narrowed(search, fingerprint=term)
    # A user id contains a bar; an entity starts with its kind.
    return _narrowed(search, key=f"user:{term}" if "|" in term and ":" not in term.partition("|")[0] else term)


def _stream(search: Search, value: str) -> Search:
    if search.stream_id not in ("", value):
        raise FilterNotUnderstood
    return replace(search, stream_id=value)


def _status(search: Search, value: str) -> Search:
    if not (value.isascii() and value.isdigit() and int(value) <= _MOST_STATUS):
        raise FilterNotUnderstood
    return _narrowed(search, error_status=int(value))


def _without_status(search: Search, value: str) -> Search:
    if value not in ("1", "True"):
        raise FilterNotUnderstood
    return _narrowed(search, error_status=0)


def _state(search: Search, value: str) -> Search:
    if value not in DeadLetter.State.values:
        raise FilterNotUnderstood
    return _narrowed(search, states=(value,))


def _error_class(search: Search, value: str) -> Search:
    if value not in FailureClass.values:
        raise FilterNotUnderstood
    return _narrowed(search, error_class=value)


def _moment(name: str, value: str) -> dict[str, datetime]:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise FilterNotUnderstood from error
    return {name: moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)}


def _narrowed(search: Search, **named: Any) -> Search:
    return replace(search, selection=replace(search.selection, **named))


_READERS: dict[str, Callable[[Search, str], Search]] = {
    "q": _term,
    "stream_id": _stream,
    "state__exact": _state,
    "error_class__exact": _error_class,
    "error_status": _status,
    "error_status__isnull": _without_status,
    "event_type": lambda search, value: _narrowed(search, event_types=(value,)),
    "error_scim_type": lambda search, value: _narrowed(search, error_scim_type=value),
    "created_at__gte": lambda search, value: _narrowed(search, **_moment("died_from", value)),
    "created_at__lt": lambda search, value: _narrowed(search, **_moment("died_to", value)),
}
