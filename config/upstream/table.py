"""The table of all operations that client libraries know, with their status. The status *served* is derived from the routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from authapi.api.neutral import NeutralEndpoint
from config.management_routes import OUTSIDE_DJANGO, ROUTES
from config.upstream.reasons import REASONS, Standing
from foundation.api.operations import Route
from foundation.api.paths import MANAGEMENT_PREFIX

# One line per operation, ordered by path: method, path with `{}` for each id, name of the method in the Python library.
OPERATIONS = Path(__file__).with_name("operations.txt")
_ID = "{}"
_PARAMETER = re.compile(r"<[^>]*>")


class Kind(StrEnum):
    """The status of an operation: one of the values of `Standing`, "served", "neutral", or "addition of this service"."""

    SERVED = "served"
    NEUTRAL = "neutral"
    REFUSED = Standing.REFUSED
    PLANNED = Standing.PLANNED
    ADDITION = "addition"


@dataclass(frozen=True)
class Entry:
    """One operation. `name` is the name in the libraries, empty for an addition of this service. `reason` is empty for a served operation.

    A neutral operation (`NeutralEndpoint`) is about a resource that this service does not have; its reason says so.
    """

    method: str
    path: str
    name: str
    kind: Kind
    reason: str = ""

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.split("/"))

    @property
    def refusal(self) -> str:
        """The message of the error response to a request for this operation."""
        return f"{self.method} /{self.path} is not supported{' yet' if self.kind is Kind.PLANNED else ''}: {self.reason}"


@lru_cache(maxsize=1)
def table() -> tuple[Entry, ...]:
    """Return every operation of the libraries and every addition of this service once, ordered by path."""
    served = {(method.upper(), template_of(route)): _refusal_of(route) for route in ROUTES for method in route.actions}
    served |= dict.fromkeys(OUTSIDE_DJANGO, "")
    known = [_entry(*line.split(), served=served) for line in OPERATIONS.read_text().splitlines()]
    named = {(entry.method, entry.path) for entry in known}
    additions = [Entry(method, path, "", Kind.ADDITION) for method, path in served.keys() - named]
    return tuple(sorted([*known, *additions], key=lambda entry: (entry.path, entry.method)))


def unbuilt_at(method: str | None, path: str) -> Entry | None:
    """Return the operation of the libraries at a requested path if the service does not have this operation; otherwise None."""
    segments = tuple(path.removeprefix(MANAGEMENT_PREFIX).split("/"))
    found = [entry for entry in _unbuilt() if entry.method == _method(method) and _covers(entry.segments, segments)]
    return max(found, key=lambda entry: _literals(entry.segments), default=None)


def hidden_behind(route: Route) -> tuple[Entry, ...]:
    """Return the operations that the service does not have, but whose requests match the path of a route.

    Such an operation has a method that the route does not serve, or a fixed word where the route has an id.
    """
    segments, methods = tuple(template_of(route).split("/")), {method.upper() for method in route.actions}
    return tuple(
        entry
        for entry in _unbuilt()
        if _meets(entry.segments, segments) and (entry.method not in methods or _literals(entry.segments) > _literals(segments))
    )


def is_hidden(entries: Iterable[Entry], method: str | None, path: str) -> bool:
    """Tell whether a request is for one of the operations in `entries`."""
    segments = tuple(path.removeprefix(MANAGEMENT_PREFIX).split("/"))
    return any(entry.method == _method(method) and _covers(entry.segments, segments) for entry in entries)


def template_of(route: Route) -> str:
    """Return the path of a route with `{}` for each id."""
    return _PARAMETER.sub(_ID, route.path)


@lru_cache(maxsize=1)
def _unbuilt() -> tuple[Entry, ...]:
    return tuple(entry for entry in table() if entry.kind in (Kind.REFUSED, Kind.PLANNED))


def _entry(method: str, path: str, name: str, *, served: Mapping[tuple[str, str], str]) -> Entry:
    if (method, path) in served:
        refusal = served[method, path]
        return Entry(method, path, name, Kind.NEUTRAL if refusal else Kind.SERVED, refusal)
    prefix = max((prefix for prefix in REASONS if f"{name}.".startswith(f"{prefix}.")), key=len)
    standing, reason = REASONS[prefix]
    return Entry(method, path, name, Kind(standing), reason)


def _refusal_of(route: Route) -> str:
    return route.endpoint.refusal if issubclass(route.endpoint, NeutralEndpoint) else ""


def _method(sent: str | None) -> str:
    return "GET" if sent == "HEAD" else sent or ""


def _literals(segments: tuple[str, ...]) -> tuple[bool, ...]:
    """Return which segments are fixed words. If two paths match, the path whose fixed word comes earlier takes precedence."""
    return tuple(segment != _ID for segment in segments)


def _covers(template: tuple[str, ...], segments: tuple[str, ...]) -> bool:
    return len(template) == len(segments) and all(
        part == segment or (part == _ID and segment) for part, segment in zip(template, segments, strict=True)
    )


def _meets(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return len(one) == len(other) and all(a == b or _ID in (a, b) for a, b in zip(one, other, strict=True))
