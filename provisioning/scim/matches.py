"""Decides which resource is our user, among the resources that a lookup returns. Pure.

Servers may ignore filters, match another attribute, or treat the value as a pattern, and still answer 200. Therefore the service
writes to a returned account only if the account has our key, a link names the account, or another rule of docs/adr/0072 proves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from provisioning.mapping.table import Person
from provisioning.scim.links import same_name

Proof = Literal["externalId", "filter", "link", "userName"]
Resource = Mapping[str, Any]


@dataclass(frozen=True)
class Match:
    """The id of the one resource that is our user, the proof, and the resource as the server returned it.

    `origin` becomes the origin of a link that is created from this match.
    """

    id: str
    proof: Proof
    resource: Resource
    origin: str = "adopted"


@dataclass(frozen=True)
class NoMatch:
    """No returned resource is our user; `foreign` is the number of resources of other users in the answer."""

    foreign: int = 0


@dataclass(frozen=True)
class Unproven:
    """A single resource without the requested key. The caller accepts the resource only if the filter is proven to be exact."""

    id: str
    resource: Resource


@dataclass(frozen=True)
class Unverifiable:
    """Resources that may belong to another user, and the reason; `keyed` is the resource with our key."""

    ids: tuple[str, ...]
    why: str = "the server does not return externalId"
    keyed: Resource | None = None


@dataclass(frozen=True)
class Ambiguous:
    """More than one resource is our user."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Taken:
    """The resource with the name of our user has another key, or belongs to another user or tenant."""

    id: str


_WORTHLESS = (
    "externalId is mapped from a value that users can choose, or another tenant provisions a user with the same id to this server, "
    "and no link names the account"
)
Verdict = Match | NoMatch | Unproven | Unverifiable | Ambiguous


class Claims(Protocol):
    """Existing links of accounts; see `LinkBook`."""

    def is_rival(self, resource: Resource) -> bool: ...

    def is_own(self, remote_id: str) -> bool: ...

    def is_kin(self, remote_id: str) -> bool: ...

    @property
    def is_key_shared(self) -> bool: ...


def by_external_id(resources: Iterable[Resource], person: Person, claims: Claims) -> Verdict:
    """Evaluate the answer to a filter on `externalId`, which is compared code point by code point (RFC 7643, 3.1)."""
    found = list(resources)
    if (keyed := _by_key(found, person, claims)) is not None:
        return keyed
    unnamed = [item for item in found if not item.get("externalId") and not claims.is_rival(item)]
    if not unnamed:
        return NoMatch(foreign=len(found))
    if len(unnamed) < len(found):
        # A resource of another user in the answer proves that the filter is not exact, and no test can disprove this.
        return Unverifiable(_ids(unnamed))
    if len(unnamed) > 1:
        return Unverifiable(_ids(unnamed))
    if not person.has_own_key or claims.is_key_shared:
        # Do not test the filter: an exact filter would only prove that the account has the key, and this key does not identify the user.
        return Unverifiable(_ids(unnamed), _WORTHLESS)
    name = unnamed[0].get("userName")
    if isinstance(name, str) and same_name(name, person.external_id) and not same_name(name, person.user_name):
        return Unverifiable(_ids(unnamed), "the server compares userName in a filter on externalId")
    return Unproven(unnamed[0]["id"], unnamed[0])


def by_user_name(resources: Iterable[Resource], person: Person, claims: Claims) -> Verdict | Taken:
    """Evaluate the answer to a filter on `userName`: ignore accounts with another name; require a further proof for an account without a
    key."""
    found = list(resources)
    if (keyed := _by_key(found, person, claims)) is not None:
        return keyed
    named = [item for item in found if has_name(item, person.user_name)]
    if not named:
        return NoMatch(foreign=len(found))
    if len(named) > 1:
        return Ambiguous(_ids(named))
    (holder,) = named
    if holder.get("externalId") or claims.is_rival(holder):
        return Taken(holder["id"])
    if claims.is_kin(holder["id"]):
        return Match(holder["id"], "link", holder)
    if person.proves_name:
        return Match(holder["id"], "userName", holder)
    return Unverifiable(_ids(named), "the account with this userName has no externalId, and the name is not proven to be this user's")


def by_key_alone(resources: Iterable[Resource], person: Person, claims: Claims) -> Verdict:
    """Evaluate the answer to a filter on `userName` if only our key is a proof."""
    found = list(resources)
    return _by_key(found, person, claims) or NoMatch(foreign=len(found))


def has_name(item: Resource, user_name: str) -> bool:
    """Tell whether a resource has this user name."""
    name = item.get("userName")
    return bool(user_name) and isinstance(name, str) and same_name(name, user_name)


def _by_key(found: list[Resource], person: Person, claims: Claims) -> Match | Ambiguous | Unverifiable | None:
    """Return the verdict on the resources with our key, or None if there are none."""
    keyed = [item for item in found if item.get("externalId") == person.external_id and not claims.is_rival(item)]
    if not keyed:
        return None
    for linked in ([item for item in keyed if claims.is_own(item["id"])], [item for item in keyed if claims.is_kin(item["id"])]):
        if len(linked) == 1:
            return Match(linked[0]["id"], "externalId", linked[0])
    if len(keyed) > 1:
        return Ambiguous(_ids(keyed))
    if claims.is_key_shared or not person.has_own_key:
        return Unverifiable(_ids(keyed), _WORTHLESS, keyed=keyed[0])
    return Match(keyed[0]["id"], "externalId", keyed[0])


def _ids(items: list[Resource]) -> tuple[str, ...]:
    return tuple(item["id"] for item in items)
