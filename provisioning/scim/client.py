"""SCIM client: create, find, replace, patch, delete. Every response is checked before it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from foundation.outbound.outcomes import Answer
from provisioning.mapping.table import Person
from provisioning.runs.failures import ActionError, DataFailure, NotSent, TransientFailure
from provisioning.scim import responses
from provisioning.scim.lookups import AccountLookup, AmbiguousMatch, ForeignAccount, UnverifiableMatch, user_path
from provisioning.scim.matches import Match, Resource
from provisioning.scim.refusals import Conflict, FilterRefused, PreconditionFailed, ResourceGone, RouteMissing
from provisioning.scim.transport import Request


class EventOutdated(Exception):
    """The event is older than the account linked to the user, or than the deletion of the user."""


class _AlreadyThere(Exception):
    def __init__(self, match: Match) -> None:
        super().__init__(match.id)
        self.match = match


@dataclass(frozen=True)
class Created:
    """The id of the resource. `existing` is set if no account was created, because a lookup found the account of the user."""

    id: str
    existing: Match | None = None

    @property
    def is_new(self) -> bool:
        return self.existing is None


class ScimClient(AccountLookup):
    """Sends requests to one server in one run of an action, for one user whose account links are in `links`."""

    def create(self, resource: dict[str, Any], person: Person, *, is_repetition: bool) -> Created:
        """Create the user exactly once, even if an answer is lost.

        1. Store a doubt first, so that the account is recognized later if the answer is lost.
        2. Look the user up before the POST if this is a repetition, or if a link or a doubt suggests that an account exists.
        3. POST. Before this request is repeated after a lost answer, look the user up again.
        4. After a 409, return the existing account if it is proven to be the user's; otherwise raise `Conflict`.

        Raises `EventOutdated`, before any request is sent, if the event is older than the account or its deletion.
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
            # An earlier try of this request created the account.
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
            # Only 201 proves a new account. With any other status, a later lookup of the key creates the link.
            self._log("warning", "the server answered a create request with a status other than 201", status=answer.status)
        return Created(str(made["id"]))

    def replace(self, match: Match, resource: dict[str, Any], person: Person) -> Resource:
        """PUT the user. Return the resource in the answer, or an empty object if the answer contains no resource. Raise `ResourceGone` if
        the user does not exist."""
        return self._write("PUT", match, resource, person)

    def patch(self, match: Match, message: dict[str, Any], person: Person) -> Resource:
        """PATCH the user with a message of `scim.patch`; the result and the exceptions are the same as for `replace`."""
        return self._write("PATCH", match, message, person)

    def delete(self, match: Match, person: Person) -> bool:
        """DELETE the user; return False if the user did not exist any more.

        After a 5xx, or after a 404 without a SCIM error body, look the user up: if no account is found, the deletion has succeeded.
        """
        sent_before = len(self._recorder.exchanges)
        path = user_path(match.id)
        try:
            answer = self._transport.send(Request("DELETE", path, "/Users/{id}", path, if_match=self._version(match)))
        except ResourceGone:
            # The first try of a repeated DELETE may have succeeded.
            return len(self._recorder.exchanges) - sent_before > 1
        except (RouteMissing, TransientFailure) as failure:
            if failure.status is None or failure.status == 429 or self.find(person) is not None:
                raise
            return True
        responses.check_deleted(answer.status)
        return True

    def once_more_if_changed(self, person: Person, match: Match, write: Callable[[Match], Any]) -> Any:
        """Write the resource. If it has changed since it was read, read it again and repeat the write once (RFC 7644, 3.14)."""
        try:
            return write(match)
        except PreconditionFailed:
            again = self.find(person)
            if again is None or again.id != match.id:
                raise
            return write(again)

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
            raise TransientFailure("another run has changed the link of the account; the event is attempted again")
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
            # The account has our key now, because this write has set it.
            self.links.seen(written, key=person.external_id, origin=match.origin, is_echo=True)
            self.links.found_again(match.resource)
        elif match.proof == "userName":
            self.links.suspected(match.resource, user_name=person.user_name, key=person.external_id)
        else:
            self._learn(person, written, is_echo=True)
        self.links.confirmed(person.user_name)
        return written

    def _proven(self, person: Person) -> Match | None:
        """Return the account of this user if the key or a link proves whose account it is. A user name alone proves nothing, because
        another person may have the same name."""
        try:
            found = self.find(person)
        except ForeignAccount:
            return None
        return found if found is not None and found.proof != "userName" else None

    def _take_back(self, *, was_in_doubt: bool) -> None:
        """Remove the doubt that was stored for a create request, because the request was not sent."""
        if not was_in_doubt:
            self.links.not_sent()

    def _before_post(self, person: Person, *, is_repetition: bool, is_doubtful: bool) -> Match | None:
        """Look for the account of an earlier create request.

        If neither a doubt nor an open link is stored, no create request was sent. Then an ambiguous or unverifiable match does not
        prevent the POST.
        """
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
        """Return the account that caused the conflict if it belongs to the user; otherwise raise the conflict."""
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
        """Return the account with the user name if our key, or a link of another action, proves that this account belongs to the user.

        The filter on keys has already failed to find this account.
        """
        try:
            return self.find_by_user_name(replace(person, proves_name=False))
        except (ForeignAccount, UnverifiableMatch, FilterRefused):
            return None


def if_match_of(server: str) -> str:
    """Return the name under which the capability "the server refuses a write with an outdated `If-Match`" is stored."""
    return f"If-Match is honored by {server}"


def _creation(resource: dict[str, Any]) -> Request:
    return Request("POST", "/Users", "/Users", "/Users", resource)
