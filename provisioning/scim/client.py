"""The SCIM client: create, find, replace, patch, delete. It trusts nothing that a server answers."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from provisioning.failures import DataFailure, TransientFailure
from provisioning.mapping import Person
from provisioning.scim import filters, matches, responses
from provisioning.scim.exchanges import ExchangeRecorder
from provisioning.scim.matches import Ambiguous, Match, NoMatch, Taken, Unproven
from provisioning.scim.refusals import Conflict, FilterRefused, ResourceGone, RouteMissing
from provisioning.scim.transport import Request, ScimTransport

_LONGEST_ID = 512


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


class _AlreadyThere(Exception):
    def __init__(self, match: Match) -> None:
        super().__init__(match.id)
        self.match = match


@dataclass(frozen=True)
class Created:
    """The id of the resource; `is_new` is False when an earlier request had already created it."""

    id: str
    is_new: bool


class ScimClient:
    """Talks to one server in one run of an action."""

    def __init__(self, transport: ScimTransport, recorder: ExchangeRecorder, capabilities: Capabilities, log: Log) -> None:
        self._transport = transport
        self._recorder = recorder
        self._capabilities = capabilities
        self._log = log

    def create(self, resource: dict[str, Any], person: Person, *, is_repetition: bool) -> Created:
        """Create the user once, even when an answer was lost.

        1. In a repetition the user is looked up first: the POST of the earlier attempt may have arrived.
        2. POST; before it is repeated after a lost answer, the user is looked up again.
        3. A 409 is ours when what exists carries our `externalId`; otherwise it is raised as `Conflict`.
        """
        if is_repetition and (existing := self._proven(person)) is not None:
            return Created(existing.id, is_new=False)
        request = Request("POST", "/Users", "/Users", "/Users", resource)
        try:
            answer = self._transport.send(request, before_uncertain_repeat=lambda: self._stop_when_there(person))
        except _AlreadyThere as there:
            # Our own request of a moment ago made it.
            return Created(there.match.id, is_new=True)
        except Conflict as conflict:
            return Created(self._owner_of_conflict(person, conflict).id, is_new=False)
        if answer.status != 201:
            self._log("warning", "create answered a status other than 201", status=answer.status)
        return Created(responses.created_id(answer.status, answer.body), is_new=True)

    def find(self, person: Person) -> Match | None:
        """Return the one resource that is verified to be this user, or None.

        The `externalId` filter decides; when the server refuses it with 400, and for this user only, `userName` does.
        Raises a `DataFailure` when what was returned cannot be told from a stranger.
        """
        try:
            resources = self.filtered("externalId", person.external_id)
        except FilterRefused as refused:
            if not person.user_name:
                raise DataFailure("the externalId filter is refused and the user has no userName to fall back on") from refused
            return self.find_by_user_name(person)
        verdict = matches.by_external_id(resources, person.external_id, person.user_name)
        return self._settled(verdict, "externalId", person.external_id)

    def find_by_user_name(self, person: Person) -> Match | None:
        """Return the resource with this user name that no other correlation key claims, or None; raise as `find` does."""
        resources = self.filtered("userName", person.user_name)
        verdict = matches.by_user_name(resources, person.external_id, person.user_name)
        return self._settled(verdict, "userName", person.user_name)

    def replace(self, resource_id: str, resource: dict[str, Any]) -> None:
        """PUT the user; raise `ResourceGone` when a SCIM error says that it is not there."""
        self._write("PUT", resource_id, resource)

    def patch(self, resource_id: str, message: dict[str, Any]) -> None:
        """PATCH the user with a message of `scim.patch`; raise as `replace` does."""
        self._write("PATCH", resource_id, message)

    def delete(self, resource_id: str, person: Person) -> bool:
        """DELETE the user; False when it was gone before.

        A 404 that is no SCIM error and a server failure prove nothing: a lookup then decides whether the user is gone.
        """
        sent_before = len(self._recorder.exchanges)
        try:
            answer = self._transport.send(Request("DELETE", user_path(resource_id), "/Users/{id}", user_path(resource_id)))
        except ResourceGone:
            # A repeated DELETE finds what its first try left behind.
            return len(self._recorder.exchanges) - sent_before > 1
        except (RouteMissing, TransientFailure) as failure:
            if failure.status is None or failure.status == 429 or self.find(person) is not None:
                raise
            return True
        responses.check_deleted(answer.status)
        return True

    def _write(self, verb: str, resource_id: str, body: dict[str, Any]) -> None:
        answer = self._transport.send(Request(verb, user_path(resource_id), "/Users/{id}", user_path(resource_id), body))
        responses.check_written(verb, answer.status, answer.body, resource_id)

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

    def _settled(self, verdict: matches.Verdict | Taken, attribute: str, value: str) -> Match | None:
        if isinstance(verdict, NoMatch):
            if verdict.foreign:
                self._log("warning", "lookup returned other users: the filter is not trusted", attribute=attribute, count=verdict.foreign)
            return None
        if isinstance(verdict, Unproven):
            if not self._filter_is_exact(attribute, value):
                raise UnverifiableMatch(detail=f"the {attribute} filter is not exact; id {verdict.id[:64]}")
            return Match(verdict.id, "filter")
        if isinstance(verdict, Match):
            return verdict
        if isinstance(verdict, Taken):
            raise ForeignAccount(detail=f"id {verdict.id[:64]}")
        failure = AmbiguousMatch if isinstance(verdict, Ambiguous) else UnverifiableMatch
        raise failure(detail=f"ids {', '.join(identifier[:64] for identifier in verdict.ids[:10])}")

    def _filter_is_exact(self, attribute: str, value: str) -> bool:
        """Ask for what cannot exist: a random value, and ours behind a pipe, which a server that reads patterns finds."""
        name = f"exact {attribute} filter of {self._transport.server}"
        if self._capabilities.is_proven(name):
            return True
        for impossible in (uuid.uuid4().hex, f"x|{value}"):
            try:
                if self.filtered(attribute, impossible):
                    return False
            except FilterRefused:
                return False
        self._capabilities.prove(name)
        return True

    def _proven(self, person: Person) -> Match | None:
        """Return the resource that carries our correlation key; one that only has the same name may be a stranger's."""
        try:
            found = self.find(person)
        except ForeignAccount:
            return None
        return found if found is not None and found.proof != "userName" else None

    def _stop_when_there(self, person: Person) -> None:
        if (existing := self._proven(person)) is not None:
            raise _AlreadyThere(existing)

    def _owner_of_conflict(self, person: Person, conflict: Conflict) -> Match:
        try:
            existing = self._proven(person)
        except (DataFailure, TransientFailure) as lookup_failure:
            raise conflict from lookup_failure
        if existing is None:
            raise conflict
        return existing


def user_path(resource_id: str) -> str:
    """Return the path of a user. An id of dots would be normalised away and the request would hit the collection."""
    if resource_id in {".", ".."} or len(resource_id) > _LONGEST_ID or not resource_id.isprintable():
        raise UnusableId
    try:
        return "/Users/" + quote(resource_id, safe="")
    except UnicodeEncodeError as error:
        raise UnusableId from error
