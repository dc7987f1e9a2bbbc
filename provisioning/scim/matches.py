"""Which of the resources that a lookup returned is really our user. Pure.

Servers ignore filters, match another attribute, or treat the value as a pattern, and answer 200. So nothing is written
to or deleted because it was found: it must carry our correlation key, or the filter must be proven exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Proof = Literal["externalId", "filter", "userName"]


@dataclass(frozen=True)
class Match:
    """The one resource that is our user, and what proves it."""

    id: str
    proof: Proof


@dataclass(frozen=True)
class NoMatch:
    """Nothing that was returned is our user; `foreign` resources were returned nevertheless."""

    foreign: int = 0


@dataclass(frozen=True)
class Unproven:
    """A single resource without the attribute that was asked for: accepted only when the filter is proven exact."""

    id: str


@dataclass(frozen=True)
class Unverifiable:
    """Resources without the attribute that was asked for: none can be told from a stranger."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Ambiguous:
    """More than one resource is our user."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Taken:
    """The resource with our user name belongs to another correlation key."""

    id: str


Verdict = Match | NoMatch | Unproven | Unverifiable | Ambiguous
Resource = Mapping[str, Any]


def by_external_id(resources: Iterable[Resource], external_id: str, user_name: str) -> Verdict:
    """Judge the answer to a filter on `externalId`. RFC 7643, 3.1: it is compared exactly, code point by code point."""
    found = list(resources)
    verified = [item for item in found if item.get("externalId") == external_id]
    if len(verified) > 1:
        return Ambiguous(_ids(verified))
    if verified:
        return Match(verified[0]["id"], "externalId")
    unnamed = [item for item in found if not item.get("externalId")]
    if not unnamed:
        return NoMatch(foreign=len(found))
    # A stranger among the answers shows that the filter is not exact; no probe could prove the opposite.
    inexact = len(unnamed) < len(found)
    return _by_same_name(unnamed, user_name) or (Unverifiable(_ids(unnamed)) if inexact else _unproven(unnamed))


def by_user_name(resources: Iterable[Resource], external_id: str, user_name: str) -> Verdict | Taken:
    """Judge the answer to a filter on `userName`, which RFC 7643, 4.1.1 compares without regard to case."""
    found = list(resources)
    verified = [item for item in found if item.get("externalId") == external_id]
    same_name = [item for item in found if _has_name(item, user_name) and item not in verified]
    ours = verified or [item for item in same_name if not item.get("externalId")]
    if len(ours) > 1:
        return Ambiguous(_ids(ours))
    if ours:
        return Match(ours[0]["id"], "externalId" if verified else "userName")
    if same_name:
        return Taken(same_name[0]["id"])
    unnamed = [item for item in found if not item.get("externalId") and not item.get("userName")]
    return _unproven(unnamed) if unnamed else NoMatch(foreign=len(found))


def _by_same_name(unnamed: list[Resource], user_name: str) -> Verdict | None:
    same = [item for item in unnamed if _has_name(item, user_name)]
    if len(same) > 1:
        return Ambiguous(_ids(same))
    return Match(same[0]["id"], "userName") if same else None


def _unproven(unnamed: list[Resource]) -> Unproven | Unverifiable:
    return Unproven(unnamed[0]["id"]) if len(unnamed) == 1 else Unverifiable(_ids(unnamed))


def _has_name(item: Resource, user_name: str) -> bool:
    name = item.get("userName")
    return bool(user_name) and isinstance(name, str) and name.casefold() == user_name.casefold()


def _ids(items: list[Resource]) -> tuple[str, ...]:
    return tuple(item["id"] for item in items)
