"""The SCIM client: create, find, replace, patch, delete. It trusts nothing that a server answers."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol
from urllib.parse import quote

from identity.outbound.outcomes import Answer
from provisioning.failures import ActionError, DataFailure, NotSent, TransientFailure
from provisioning.mapping import Person
from provisioning.scim import filters, matches, responses
from provisioning.scim.exchanges import ExchangeRecorder
from provisioning.scim.links import LONGEST_ID, UNSTABLE, Link, LinkBook, creation_of, untracked
from provisioning.scim.matches import Ambiguous, Match, NoMatch, Resource, Taken, Unproven, Unverifiable
from provisioning.scim.refusals import Conflict, FilterRefused, PreconditionFailed, ResourceGone, RouteMissing
from provisioning.scim.transport import Request, ScimTransport

_HOW_TO_CONFIRM = "confirm it under Account links, and redeliver"
_HOW_TO_ADOPT = "link it by a synchronisation, set its externalId on the server, or change user_name_proof"


class Log(Protocol):
    """Where a run keeps its log lines."""

    def __call__(self, level: str, message: str, **fields: Any) -> None: ...


class Capabilities(Protocol):
    """What is known about the server from probes; kept with the action."""

    def is_proven(self, name: str) -> bool: ...

    def prove(self, name: str) -> None: ...


class AmbiguousMatch(DataFailure):
    """ambiguous match: more than one resource is this user"""


class UnverifiableMatch(DataFailure):
    """unverifiable match: what the lookup returned cannot be told from another user"""


class ForeignAccount(DataFailure):
    """conflict: the resource with this userName belongs to another user"""


class UnusableId(DataFailure):
    """the id of the resource cannot be used in a path"""


class EventOutdated(Exception):
    """The event is older than the account that is linked to the user, or than its deletion."""


class _AlreadyThere(Exception):
    def __init__(self, match: Match) -> None:
        super().__init__(match.id)
        self.match = match


@dataclass(frozen=True)
class Created:
    """The id of the resource; `existing` is what was found when an earlier request had created it or a link names it."""

    id: str
    existing: Match | None = None

    @property
    def is_new(self) -> bool:
        return self.existing is None


class ScimClient:
    """Talks to one server in one run of an action, about one user whose links are in `links`."""

    def __init__(
        self, transport: ScimTransport, recorder: ExchangeRecorder, capabilities: Capabilities, log: Log, links: LinkBook | None = None
    ) -> None:
        self._transport = transport
        self._recorder = recorder
        self._capabilities = capabilities
        self._log = log
        self.links = links or untracked()
        # Whether a lookup returned accounts that were not asked for: what it did not return proves nothing then.
        self.has_met_strangers = False

    def for_user(self, links: LinkBook) -> ScimClient:
        """Return this client for the user of these links."""
        other = copy.copy(self)
        other.links = links
        return other

    def create(self, resource: dict[str, Any], person: Person, *, is_repetition: bool) -> Created:
        """Create the user once, even when an answer was lost.

        1. That a create is about to be sent is stored first, so that a lost answer leaves a doubt and not a stranger.
        2. The user is looked up before the POST in a repetition, and when a link or a doubt says that an account may be there.
        3. POST; before it is repeated after a lost answer, the user is looked up again.
        4. A 409 is ours when what exists is proven to be; otherwise it is raised as `Conflict`.

        Raises `EventOutdated` when the event is older than the account or its deletion; nothing is sent then.
        """
        was_in_doubt = self.links.begin_create(user_name=person.user_name, key=person.external_id)
        if self.links.is_stale:
            raise EventOutdated
        try:
            existing = self._before_post(person, is_repetition=is_repetition, is_doubtful=was_in_doubt)
        except Exception:
            self._take_back(was_in_doubt=was_in_doubt)
            raise
        if existing is not None:
            self.links.not_created()
            return Created(existing.id, existing)
        return self._post(resource, person, was_in_doubt=was_in_doubt)

    def _post(self, resource: dict[str, Any], person: Person, *, was_in_doubt: bool) -> Created:
        try:
            answer = self._transport.send(_creation(resource), before_uncertain_repeat=lambda: self._stop_when_there(person))
        except _AlreadyThere as there:
            # Our own request of a moment ago made it.
            return Created(there.match.id)
        except Conflict as conflict:
            owner = self._owner_of_conflict(person, conflict, is_doubtful=was_in_doubt)
            return Created(owner.id, owner)
        except ActionError as failure:
            if not failure.is_uncertain and not was_in_doubt:
                self.links.not_created()
            raise
        except NotSent:
            self._take_back(was_in_doubt=was_in_doubt)
            raise
        return self._made(answer, person)

    def _made(self, answer: Answer, person: Person) -> Created:
        made = responses.created_user(answer.status, answer.body)
        if answer.status == 201:
            self.links.created(made, user_name=person.user_name, key=person.external_id)
        else:
            # Not said to be new: it counts as created, and the link is learned from its key.
            self._log("warning", "create answered a status other than 201", status=answer.status)
        return Created(str(made["id"]))

    def find(self, person: Person) -> Match | None:
        """Return the one resource that is verified to be this user, or None.

        1. The `externalId` filter is asked first, and what it returns with our key is the user.
        2. When the server refuses the filter, or finds no such account while a link is open, the linked account is read.
        3. Without a link `userName` is asked after a refusal; after an empty answer only on a server that was seen to miss ours.

        Raises a `DataFailure` when what was returned cannot be told from a stranger, and `RouteMissing` for a 404 that is no
        SCIM error.
        """
        try:
            resources = self.filtered("externalId", person.external_id)
        except FilterRefused as refused:
            self.links.look()
            if (link := self.links.open_link) is not None:
                return self._linked(person, link)
            if not person.user_name:
                raise DataFailure("the externalId filter is refused and the user has no userName to fall back on") from refused
            return self.find_by_user_name(person)
        self.has_met_strangers = any(item.get("externalId") not in (None, "", person.external_id) for item in resources)
        self.links.look(item["id"] for item in resources)
        verdict = matches.by_external_id(resources, person, self.links)
        if isinstance(verdict, Match):
            return self._settled(verdict, person)
        if (link := self.links.open_link) is not None:
            self._warn_of_foreign(verdict, "externalId")
            return self._linked(person, link, was_missed=isinstance(verdict, NoMatch))
        if isinstance(verdict, NoMatch) and person.user_name and self._capabilities.is_proven(self._misses):
            found = self._named(person)
            return self._settled(matches.by_key_alone(found, person, self.links), person)
        return self._settled(verdict, person)

    def find_by_user_name(self, person: Person) -> Match | None:
        """Return the resource with this user name that is proven to be the user, or None; raise as `find` does."""
        return self._settled(matches.by_user_name(self._named(person), person, self.links), person, attribute="userName")

    def replace(self, match: Match, resource: dict[str, Any], person: Person) -> Resource:
        """PUT the user and return what the server made of it, if it says so; raise `ResourceGone` when it is not there."""
        return self._write("PUT", match, resource, person)

    def patch(self, match: Match, message: dict[str, Any], person: Person) -> Resource:
        """PATCH the user with a message of `scim.patch`; answer and errors are those of `replace`."""
        return self._write("PATCH", match, message, person)

    def delete(self, match: Match, person: Person) -> bool:
        """DELETE the user; False when it was gone before.

        A 404 that is no SCIM error and a server failure prove nothing: a lookup then decides whether the user is gone.
        """
        sent_before = len(self._recorder.exchanges)
        path = user_path(match.id)
        try:
            answer = self._transport.send(Request("DELETE", path, "/Users/{id}", path, if_match=self._version(match)))
        except ResourceGone:
            # A repeated DELETE finds what its first try left behind.
            return len(self._recorder.exchanges) - sent_before > 1
        except (RouteMissing, TransientFailure) as failure:
            if failure.status is None or failure.status == 429 or self.find(person) is not None:
                raise
            return True
        responses.check_deleted(answer.status)
        return True

    def once_more_if_changed(self, person: Person, match: Match, write: Callable[[Match], Any]) -> Any:
        """Write, and when the resource changed since it was read, read it again and write once more (RFC 7644, 3.14)."""
        try:
            return write(match)
        except PreconditionFailed:
            again = self.find(person)
            if again is None or again.id != match.id:
                raise
            return write(again)

    def filtered(self, attribute: str, value: str) -> list[dict[str, Any]]:
        """Return what the server finds for one value of an attribute, not yet verified; raise `FilterRefused` on 400."""
        try:
            query = filters.query(filters.equals(attribute, value))
        except ValueError as error:
            raise DataFailure(f"the {attribute} of the user cannot be written in a filter") from error
        # User names are personal data and would fill the records (RFC 7644, 7.5.2).
        shown = filters.equals(attribute, value) if attribute == "externalId" else f"{attribute} eq {filters.REDACTED}"
        answer = self._transport.send(Request("GET", f"/Users?{query}", f"/Users?filter={attribute}", f"/Users?filter={shown}"))
        return responses.found_resources(answer.status, answer.body)

    def misses(self, resource_id: str, external_id: str) -> bool:
        """Tell whether the server lacks, in its answer to the filter, an account that its listing shows with this key, and keep that."""
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
        """Return one user by its id; raise `ResourceGone` for a SCIM 404, and as for any other invalid answer."""
        path = user_path(resource_id)
        answer = self._transport.send(Request("GET", path, "/Users/{id}", path))
        return responses.read_user(answer.status, answer.body, resource_id)

    @property
    def _misses(self) -> str:
        return f"externalId filter of {self._transport.server} misses accounts"

    @property
    def _honors_if_match(self) -> bool:
        return self._capabilities.is_proven(if_match_of(self._transport.server))

    def _version(self, match: Match) -> str:
        meta = match.resource.get("meta")
        version = meta.get("version") if isinstance(meta, dict) else None
        return version if isinstance(version, str) and version.isprintable() and self._honors_if_match else ""

    def _write(self, verb: str, match: Match, body: dict[str, Any], person: Person) -> Resource:
        path = user_path(match.id)
        if not self.links.announce(person.user_name, person.external_id):
            raise TransientFailure("another run has changed the link of the account: the event is tried again")
        try:
            answer = self._transport.send(Request(verb, path, "/Users/{id}", path, body, if_match=self._version(match)))
        except Conflict:
            self.links.refused(person.user_name)
            raise
        except ResourceGone:
            self.links.gone(match.id)
            raise
        written = responses.written_user(verb, answer.status, answer.body, match.id)
        if match.proof == "userName" and written.get("externalId") == person.external_id:
            # The account carries our key from now on.
            self.links.seen(written, key=person.external_id, origin=match.origin)
        elif match.proof == "userName":
            self.links.suspected(match.id, user_name=person.user_name)
        else:
            self._learn(person, written)
        self.links.confirmed(person.user_name)
        return written

    def _named(self, person: Person) -> list[dict[str, Any]]:
        found = self.filtered("userName", person.user_name)
        self.links.look(item["id"] for item in found)
        return found

    def _linked(self, person: Person, link: Link, *, was_missed: bool = False) -> Match | None:
        """Return the linked account if it proves to be the one that was linked; None when the server says that it is gone."""
        if self.links.is_just_gone:
            return None
        try:
            found = self.read(link.remote_id)
        except ResourceGone:
            self.links.gone(link.remote_id)
            return None
        self.links.look([link.remote_id])
        if self.links.is_rival(found):
            raise ForeignAccount("conflict: the linked account is linked to another user as well", detail=f"id {link.remote_id[:64]}")
        key = found.get("externalId")
        if key and key not in (*link.keys, person.external_id):
            raise UnverifiableMatch(detail=f"the linked account, id {link.remote_id[:64]}, carries another externalId")
        is_named_by_key = bool(key) and key == person.external_id and person.has_own_key and not self.links.has_rival_user
        if is_named_by_key and was_missed and not self._capabilities.is_proven(self._misses):
            self._log("warning", "the externalId filter does not find an account that carries the key", scim_id=link.remote_id)
            self._capabilities.prove(self._misses)
        self._check_witness(link, found, is_named_by_key=is_named_by_key)
        self.links.found_again(creation_of(found))
        return Match(link.remote_id, "link", found)

    def _check_witness(self, link: Link | None, found: Resource, *, is_named_by_key: bool) -> None:
        """Raise unless something tells that the account under the linked id is still the one that was linked.

        An id may be given again. The creation time and a name that was sent are witnesses; another creation time, and the loss
        of a key that the server has shown, speak against it.
        """
        if is_named_by_key or link is None:
            return
        if link.is_keyed and not found.get("externalId"):
            raise UnverifiableMatch(detail=f"the linked account, id {link.remote_id[:64]}, has lost its externalId")
        created = creation_of(found)
        is_known = bool(created) and link.created_there not in ("", UNSTABLE)
        if is_known and created != link.created_there:
            raise UnverifiableMatch(detail=f"the account with the linked id {link.remote_id[:64]} was created at another time")
        name = found.get("userName")
        # A server may show one creation time for all accounts; then an equal one says nothing.
        tells_apart = is_known and self.links.shows_creation(other_than=created)
        if not tells_apart and not (isinstance(name, str) and link.has_sent(name)):
            raise UnverifiableMatch(detail=f"the linked account, id {link.remote_id[:64]}, has a userName that was never sent to it")

    def _learn(self, person: Person, resource: Resource) -> None:
        if resource.get("externalId") == person.external_id:
            self.links.seen(resource, key=person.external_id)

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
                # Only a link proves this one, and its id may have been given again since it was written.
                self._check_witness(self.links.link_to(verdict.id), verdict.resource, is_named_by_key=False)
            self._learn(person, verdict.resource)
            return verdict
        self._refuse(verdict)

    def _refuse(self, verdict: Taken | Ambiguous | Unverifiable) -> NoReturn:
        if isinstance(verdict, Taken):
            raise ForeignAccount(detail=f"id {verdict.id[:64]}")
        ids = f"ids {', '.join(identifier[:64] for identifier in verdict.ids[:10])}"
        if isinstance(verdict, Ambiguous):
            raise AmbiguousMatch(detail=ids)
        how = _HOW_TO_ADOPT
        if verdict.carries_key:
            self.links.suspected(verdict.ids[0])
            how = _HOW_TO_CONFIRM
        # The dead letter shows the message, and the ids stand in the attempt: they would make a kind of failure of each user.
        raise UnverifiableMatch(f"{UnverifiableMatch.__doc__}: {verdict.why}. To take it over, {how}", detail=ids)

    def _filter_is_exact(self, value: str) -> bool:
        """Ask for what cannot exist: a random value, and ours as a server that reads patterns would find it."""
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

    def _proven(self, person: Person) -> Match | None:
        """Return the resource that is this user by more than its name, which may be a stranger's."""
        try:
            found = self.find(person)
        except ForeignAccount:
            return None
        return found if found is not None and found.proof != "userName" else None

    def _take_back(self, *, was_in_doubt: bool) -> None:
        """Take the doubt back at once that was stored for a create which was not sent."""
        if not was_in_doubt:
            self.links.not_sent()

    def _before_post(self, person: Person, *, is_repetition: bool, is_doubtful: bool) -> Match | None:
        """Look for the account of an earlier create. Without a doubt none was sent that could have arrived, so strangers stop nothing."""
        may_be_there = is_repetition or is_doubtful or self.links.open_link is not None
        if not may_be_there or self.links.is_just_gone:
            return None
        try:
            return self._proven(person)
        except (UnverifiableMatch, AmbiguousMatch):
            if is_doubtful or self.links.open_link is not None:
                raise
            return None

    def _stop_when_there(self, person: Person) -> None:
        if (existing := self._proven(person)) is not None:
            raise _AlreadyThere(existing)

    def _owner_of_conflict(self, person: Person, conflict: Conflict, *, is_doubtful: bool) -> Match:
        """Return the account that made the server refuse a create, if it is ours; raise the conflict otherwise."""
        if not (is_doubtful or conflict.is_uncertain):
            self.links.not_created()
        try:
            existing = self._proven(person) or self._proven_by_holder(person)
        except (DataFailure, TransientFailure) as lookup_failure:
            raise conflict from lookup_failure
        if existing is None:
            raise conflict
        return existing

    def _proven_by_holder(self, person: Person) -> Match | None:
        """Return the holder of the user name if our key or a link of another action proves it: the filter on keys has not found it."""
        try:
            return self.find_by_user_name(replace(person, proves_name=False))
        except (ForeignAccount, UnverifiableMatch, FilterRefused):
            return None


def _creation(resource: dict[str, Any]) -> Request:
    return Request("POST", "/Users", "/Users", "/Users", resource)


def if_match_of(server: str) -> str:
    """Return under which name it is kept that a server refuses a write whose `If-Match` is out of date."""
    return f"If-Match is honored by {server}"


def user_path(resource_id: str) -> str:
    """Return the path of a user. An id of dots would be normalised away and the request would hit the collection."""
    if resource_id in {".", ".."} or len(resource_id) > LONGEST_ID or not resource_id.isprintable():
        raise UnusableId
    try:
        return "/Users/" + quote(resource_id, safe="")
    except UnicodeEncodeError as error:
        raise UnusableId from error
