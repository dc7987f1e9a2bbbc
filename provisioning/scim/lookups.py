"""Finds the account of a user on a SCIM server, and proves that the account belongs to the user (docs/adr/0072). Only reads."""

from __future__ import annotations

import copy
import uuid
from typing import Any, NoReturn, Protocol, Self
from urllib.parse import quote

from provisioning.mapping.table import Person
from provisioning.runs.exchanges import ExchangeRecorder
from provisioning.runs.failures import DataFailure
from provisioning.scim import filters, matches, responses
from provisioning.scim.instants import same_instant
from provisioning.scim.link_book import LinkBook, untracked
from provisioning.scim.links import LONGEST_ID, UNSTABLE, Link, creation_of
from provisioning.scim.matches import Ambiguous, Match, NoMatch, Resource, Taken, Unproven, Unverifiable
from provisioning.scim.refusals import FilterRefused, ResourceGone
from provisioning.scim.transport import Request, ScimTransport

_HOW_TO_CONFIRM = "confirm its link under Account links, and redeliver"
_HOW_TO_ADOPT = "link the account by a synchronization, set its externalId on the server, or change user_name_proof"


class Log(Protocol):
    """Writes a log line of the run."""

    def __call__(self, level: str, message: str, **fields: Any) -> None: ...


class Capabilities(Protocol):
    """What checks have found out about the server; stored with the action."""

    def is_proven(self, name: str) -> bool: ...

    def prove(self, name: str) -> None: ...


class AmbiguousMatch(DataFailure):
    """ambiguous match: more than one resource is this user"""


class UnverifiableMatch(DataFailure):
    """unverifiable match: the returned account may belong to another user"""


class ForeignAccount(DataFailure):
    """conflict: the resource with this userName belongs to another user"""


class UnusableId(DataFailure):
    """the id of the resource cannot be used in a path"""


class AccountLookup:
    """Looks up the account of one user on one server, in one run of an action. `links` contains the user's account links."""

    def __init__(
        self, transport: ScimTransport, recorder: ExchangeRecorder, capabilities: Capabilities, log: Log, links: LinkBook | None = None
    ) -> None:
        self._transport = transport
        self._recorder = recorder
        self._capabilities = capabilities
        self._log = log
        self.links = links or untracked()
        # Whether the last lookup by `externalId` returned an account with another key. If so, the absence of an account proves nothing.
        self.has_met_strangers = False

    def for_user(self, links: LinkBook) -> Self:
        """Return a copy of this object with the account links of another user."""
        other = copy.copy(self)
        other.links = links
        return other

    def find(self, person: Person) -> Match | None:
        """Return the one resource that is verified to be this user, or None.

        1. Filter by `externalId`. An account with our key belongs to the user.
        2. If the server refuses the filter, or returns no account with our key, read the account that this action has linked to the user.
           If this action has no valid link, read the account that another action of the tenant has linked.
        3. Without any link, filter by `userName` in two cases: if the server refused the filter by `externalId`, or if that filter is known
           to miss accounts with our key. In the second case, only our key proves that an account belongs to the user.

        Raises a `DataFailure` if a returned account may belong to another user, and `RouteMissing` for a 404 without a SCIM error body.
        """
        try:
            resources = self.filtered("externalId", person.external_id)
        except FilterRefused as refused:
            return self._found_without_key(person, refused)
        self.has_met_strangers = any(item.get("externalId") not in (None, "", person.external_id) for item in resources)
        self.links.look(item["id"] for item in resources)
        verdict = matches.by_external_id(resources, person, self.links)
        if isinstance(verdict, Match):
            return self._settled(verdict, person)
        if (link := self.links.open_link) is not None:
            self._warn_of_foreign(verdict, "externalId")
            return self._linked(person, link, was_missed=isinstance(verdict, NoMatch))
        if isinstance(verdict, NoMatch) and (found := self._inherited(person, was_missed=True)) is not None:
            return found
        if isinstance(verdict, NoMatch) and person.user_name and self._capabilities.is_proven(self._misses):
            named = self._named(person)
            return self._settled(matches.by_key_alone(named, person, self.links), person)
        return self._settled(verdict, person)

    def _found_without_key(self, person: Person, refused: FilterRefused) -> Match | None:
        self.links.look()
        if (link := self.links.open_link) is not None:
            return self._linked(person, link)
        if (found := self._inherited(person)) is not None:
            return found
        if not person.user_name:
            raise DataFailure("the externalId filter is refused and the user has no userName to fall back on") from refused
        return self.find_by_user_name(person)

    def find_by_user_name(self, person: Person) -> Match | None:
        """Return the resource with this user name that is proven to be the user, or None; raise the exceptions of `find`."""
        return self._settled(matches.by_user_name(self._named(person), person, self.links), person, attribute="userName")

    def filtered(self, attribute: str, value: str) -> list[dict[str, Any]]:
        """Return the resources that the server finds for one value of an attribute, not yet verified; raise `FilterRefused` on 400."""
        try:
            query = filters.query(filters.equals(attribute, value))
        except ValueError as error:
            raise DataFailure(f"the {attribute} of the user cannot be encoded in a filter") from error
        # User names are personal data and stay out of the stored exchanges (RFC 7644, 7.5.2).
        shown = filters.equals(attribute, value) if attribute == "externalId" else f"{attribute} eq {filters.REDACTED}"
        answer = self._transport.send(Request("GET", f"/Users?{query}", f"/Users?filter={attribute}", f"/Users?filter={shown}"))
        return responses.found_resources(answer.status, answer.body)

    def misses(self, resource_id: str, external_id: str) -> bool:
        """Tell whether the filter fails to find an account that the listing shows with this key. If so, store this
        as a capability of the server."""
        try:
            found = self.filtered("externalId", external_id)
        except FilterRefused:
            return False
        if any(item["id"] == resource_id for item in found):
            return False
        if not self._capabilities.is_proven(self._misses):
            self._capabilities.prove(self._misses)
        return True

    def read(self, resource_id: str) -> dict[str, Any]:
        """Return one user by its id. Raises `ResourceGone` for a SCIM 404, and `InvalidResponseShape` for an invalid answer."""
        path = user_path(resource_id)
        answer = self._transport.send(Request("GET", path, "/Users/{id}", path))
        return responses.read_user(answer.status, answer.body, resource_id)

    @property
    def _misses(self) -> str:
        return f"externalId filter of {self._transport.server} misses accounts"

    def _named(self, person: Person) -> list[dict[str, Any]]:
        found = self.filtered("userName", person.user_name)
        self.links.look(item["id"] for item in found)
        return found

    def _linked(self, person: Person, link: Link, *, was_missed: bool = False) -> Match | None:
        """Return the linked account if its witnesses agree; None if the server reports the account as missing."""
        if self.links.is_just_gone:
            return None
        try:
            found = self.read(link.remote_id)
        except ResourceGone:
            self.links.gone(link.remote_id)
            return None
        self.links.look([link.remote_id])
        if self.links.is_rival(found):
            how = "forget the wrong link under Account links"
            raise ForeignAccount(
                f"conflict: the linked account is linked to another user as well; {how}", detail=f"id {link.remote_id[:64]}"
            )
        key = found.get("externalId")
        if key and key not in (*link.keys, person.external_id):
            raise UnverifiableMatch(detail=f"the linked account, id {link.remote_id[:64]}, has another externalId")
        is_named_by_key = bool(key) and key == person.external_id and person.has_own_key and not self.links.has_rival_user
        if is_named_by_key and was_missed and not self._capabilities.is_proven(self._misses):
            self._log("warning", "the externalId filter does not find an account that has the key", scim_id=link.remote_id)
            self._capabilities.prove(self._misses)
        self._check_witness(link, found, is_named_by_key=is_named_by_key)
        self.links.inherit(link)
        self.links.found_again(found)
        return Match(link.remote_id, "link", found)

    def _inherited(self, person: Person, *, was_missed: bool = False) -> Match | None:
        """Return the account that another action of the tenant has linked, if it exists and its witnesses agree."""
        link = self.links.inherited
        return None if link is None else self._linked(person, link, was_missed=was_missed)

    def _check_witness(self, link: Link | None, found: Resource, *, is_named_by_key: bool) -> None:
        """Raise `UnverifiableMatch` unless a witness proves that the linked id was not reassigned to another account.

        Witnesses are the creation time, and the user names that were sent. A different creation time, or the loss of a key that the
        server has returned before, is evidence of another account.
        """
        if is_named_by_key or link is None:
            return
        if link.is_keyed and not found.get("externalId"):
            raise UnverifiableMatch(detail=f"the linked account, id {link.remote_id[:64]}, no longer has its externalId")
        created = creation_of(found)
        is_known = bool(created) and link.created_there not in ("", UNSTABLE)
        if is_known and not same_instant(created, link.created_there):
            raise UnverifiableMatch(detail=f"the account with the linked id {link.remote_id[:64]} was created at another time")
        name = found.get("userName")
        # A server may return the same creation time for all accounts; then an equal time proves nothing.
        tells_apart = is_known and self.links.shows_creation(other_than=created)
        if tells_apart or (isinstance(name, str) and link.has_sent(name)):
            return
        if link.takes_first_read and self.links.is_own(link.remote_id):
            self.links.found_again(found)
            return
        detail = f"the linked account, id {link.remote_id[:64]}, has a userName that was never sent to it"
        if link.has_witness:
            raise UnverifiableMatch(detail=detail)
        why = f"no name of the linked account is known. To keep it, {_HOW_TO_CONFIRM}"
        raise UnverifiableMatch(f"{UnverifiableMatch.__doc__}: {why}", detail=detail)

    def _learn(self, person: Person, resource: Resource, *, is_echo: bool = False) -> None:
        if resource.get("externalId") == person.external_id:
            self.links.seen(resource, key=person.external_id, is_echo=is_echo)

    def _warn_of_foreign(self, verdict: object, attribute: str) -> None:
        if isinstance(verdict, NoMatch) and verdict.foreign:
            self._log("warning", "lookup returned other users: the filter is not trusted", attribute=attribute, count=verdict.foreign)

    def _settled(self, verdict: matches.Verdict | Taken, person: Person, attribute: str = "externalId") -> Match | None:
        if isinstance(verdict, NoMatch):
            self._warn_of_foreign(verdict, attribute)
            return None
        if isinstance(verdict, Unproven):
            if not self._filter_is_exact(person.external_id):
                raise UnverifiableMatch(detail=f"the {attribute} filter is not exact; id {verdict.id[:64]}")
            return Match(verdict.id, "filter", verdict.resource)
        if isinstance(verdict, Match):
            if verdict.proof == "link" or self.links.has_rival_user:
                # Only a link proves that this account belongs to the user. Check the witnesses of the link, because the server may have
                # reassigned the linked id to another account.
                link = self.links.link_to(verdict.id)
                self._check_witness(link, verdict.resource, is_named_by_key=False)
                self.links.inherit(link)
            self._learn(person, verdict.resource)
            return verdict
        self._refuse(verdict)

    def _refuse(self, verdict: Taken | Ambiguous | Unverifiable) -> NoReturn:
        if isinstance(verdict, Taken):
            raise ForeignAccount(detail=f"id {verdict.id[:64]}")
        ids = f"ids {', '.join(identifier[:64] for identifier in verdict.ids[:10])}"
        if isinstance(verdict, Ambiguous):
            raise AmbiguousMatch(detail=ids)
        if verdict.keyed is not None:
            self.links.suspected(verdict.keyed)
        is_listed = self.links.is_suspected and self.links.own is not None and self.links.own.remote_id in verdict.ids
        how = _HOW_TO_CONFIRM if is_listed else _HOW_TO_ADOPT
        # The message is part of the fingerprint. If it contained ids, each user would be a separate kind of failure. The attempt stores the
        # ids.
        raise UnverifiableMatch(f"{UnverifiableMatch.__doc__}: {verdict.why}. To take over the account, {how}", detail=ids)

    def _filter_is_exact(self, value: str) -> bool:
        """Test the filter with values that must not match: a random value, and variants of our key, for example with wildcards."""
        name = f"exact externalId filter of {self._transport.server}"
        if self._capabilities.is_proven(name):
            return True
        for impossible in (uuid.uuid4().hex, f"x|{value}", f"{value[:-1]}_", f"{value[:-1]}*", value.swapcase()):
            if impossible == value:
                continue
            try:
                if self.filtered("externalId", impossible):
                    return False
            except FilterRefused:
                return False
        self._capabilities.prove(name)
        return True


def user_path(resource_id: str) -> str:
    """Return the path of a user; raise `UnusableId` for an id such as `..`, which would be normalized to another path."""
    if resource_id in {".", ".."} or len(resource_id) > LONGEST_ID or not resource_id.isprintable():
        raise UnusableId
    try:
        return "/Users/" + quote(resource_id, safe="")
    except UnicodeEncodeError as error:
        raise UnusableId from error
