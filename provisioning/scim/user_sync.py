"""Makes SCIM requests from user events, by the rules in the section "Requests made by the provisioning action" of the spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioning.mapping.table import MappedUser, MappingFailed, MappingRow, Operation, Person, map_user, person_of
from provisioning.runs.failures import DataFailure
from provisioning.runs.results import Result, delivered, skipped
from provisioning.scim import patch
from provisioning.scim.client import EventOutdated, ScimClient
from provisioning.scim.lookups import ForeignAccount, Log, UnverifiableMatch
from provisioning.scim.matches import Match
from provisioning.scim.name_proof import proves_name
from provisioning.scim.options import ScimOptions
from provisioning.scim.refusals import Conflict, ResourceGone

Document = Mapping[str, Any]
OUTDATED = "older than the account"
NO_USER_TO_UPDATE = "no user to update"
NO_USER_TO_DELETE = "no user to delete"


class DeletionInDoubt(DataFailure):
    """deletion in doubt: the answer to a create of this user was lost, and no account was found that is proven to be the user"""


class UnconfirmedAccount(DataFailure):
    """deletion of a suspect: the user's account was identified by its name alone and is no longer found; confirm its link under Account
    links"""


@dataclass(frozen=True)
class Circumstances:
    """The context of a run: whether an earlier attempt may have reached the server, and which proofs of ownership are trusted.

    `strategy` is the strategy of the user's connection. `allow_named_deletion` raises an exception above the hourly limit of deletions of
    accounts that are identified by their name alone.
    """

    event_id: str
    is_repetition: bool
    strategy: str = ""
    trusted_strategies: frozenset[str] = frozenset()
    allow_named_deletion: Callable[[str], None] = lambda user_id: None


def update_request(options: ScimOptions, mapped: MappedUser) -> tuple[str, dict[str, Any]]:
    """Return HTTP method and body of an update in the mode of the options."""
    if options.update_mode == "put":
        return "PUT", mapped.resource
    if options.update_mode == "patch":
        return "PATCH", patch.whole_user(mapped.resource)
    return "PATCH", patch.per_attribute(mapped.resource, mapped.removed)


class UserSync:
    """Applies the user event of one run to one server."""

    def __init__(
        self, client: ScimClient, table: tuple[MappingRow, ...], options: ScimOptions, log: Log, circumstances: Circumstances
    ) -> None:
        self._client = client
        self._table = table
        self._options = options
        self._log = log
        self._run = circumstances

    def created(self, document: Document) -> Result:
        """POST the mapped user; a user without the property mapped to `userName` is skipped (spec, mapping rule 1)."""
        person = self._person(document)
        if (skip := self._unidentified(person, document, "create")) is not None:
            return skip
        return self._create(document, person, reason="created", is_repetition=self._run.is_repetition)

    def updated(self, document: Document) -> Result:
        """Look the user up, then write the whole mapped user. If the user is missing, skip the event or, with the option `upsert`, create
        the user.

        If the server has just returned the resource and then reports it as missing, look the user up once more.
        """
        person = self._person(document)
        if (skip := self._unidentified(person, document, "update")) is not None:
            return skip
        found = self._client.find(person)
        if self._client.links.is_stale:
            return self._outdated(person)
        if found is None:
            return self._missing(document, person)
        try:
            return self._update(found, document)
        except ResourceGone:
            again = self._client.find(person)
            if again is None:
                return self._missing(document, person)
            if again.id == found.id:
                raise
            return self._update(again, document)

    def deleted(self, document: Document) -> Result:
        """Look the user up, then DELETE. If the user is missing, skip the event. Users without an email address are deleted as well.

        Two failures prevent a skip if an account may exist that was not found: `DeletionInDoubt` if an earlier create got no answer, and
        `UnconfirmedAccount` if the link is a suspect.
        """
        person = self._person(document)
        if not person.external_id:
            self._log("warning", "delete skipped: no externalId", event_id=self._run.event_id)
            return skipped("missing externalId")
        found = self._client.find(person)
        links = self._client.links
        if links.is_stale:
            return self._outdated(person)
        if found is None:
            if links.is_in_doubt:
                raise DeletionInDoubt
            if links.is_suspected:
                raise UnconfirmedAccount
            links.deleted()
            return skipped(NO_USER_TO_DELETE, user_id=person.external_id)
        if found.proof == "userName":
            self._run.allow_named_deletion(str(document.get("user_id", "")))
        is_ours = self._client.once_more_if_changed(person, found, lambda match: self._client.delete(match, person))
        links.deleted()
        ids = {"user_id": person.external_id, "scim_id": found.id}
        return delivered("deleted", **ids) if is_ours else skipped("already gone", **ids)

    def _unidentified(self, person: Person, document: Document, verb: str) -> Result | None:
        if not person.external_id:
            self._log("warning", f"{verb} skipped: no externalId", event_id=self._run.event_id)
            return skipped("missing externalId")
        if not person.user_name:
            self._log("warning", f"{verb} skipped: no userName", event_id=self._run.event_id, user_id=document.get("user_id"))
            return skipped("missing userName", user_id=person.external_id)
        return None

    def _outdated(self, person: Person) -> Result:
        self._log("warning", "skipped: the event is older than the account or its deletion", event_id=self._run.event_id)
        return skipped(OUTDATED, user_id=person.external_id)

    def _missing(self, document: Document, person: Person) -> Result:
        if self._options.upsert:
            # The preceding lookup found nothing, so no second lookup is needed before the POST.
            return self._create(document, person, reason="created-from-update", is_repetition=False)
        self._log("warning", "update skipped: no matching user, upsert is off", event_id=self._run.event_id, user_id=person.external_id)
        return skipped(NO_USER_TO_UPDATE, user_id=person.external_id)

    def _create(self, document: Document, person: Person, *, reason: str, is_repetition: bool) -> Result:
        mapped = self._mapped(document, "create")
        try:
            created = self._client.create(mapped.resource, person, is_repetition=is_repetition)
        except EventOutdated:
            return self._outdated(person)
        except Conflict as conflict:
            return self._adopt(document, person, conflict)
        if created.existing is None:
            return delivered(reason, user_id=person.external_id, scim_id=created.id)
        # An account that an earlier event has linked does not have the values of this event yet, so write them.
        if reason != "created" or self._client.links.is_linked_before:
            return self._update(created.existing, document)
        if is_repetition:
            # Report a write and not a skip. Otherwise a later redelivery of an older event would not end as superseded.
            return delivered("created by an earlier attempt", user_id=person.external_id, scim_id=created.id)
        return skipped("duplicate delivery", user_id=person.external_id, scim_id=created.id)

    def _update(self, found: Match, document: Document, *, reason: str = "updated") -> Result:
        person = self._person(document)
        verb, body = update_request(self._options, self._mapped(document, "update"))
        write = self._client.replace if verb == "PUT" else self._client.patch
        self._client.once_more_if_changed(person, found, lambda match: write(match, body, person))
        return delivered(reason, user_id=person.external_id, scim_id=found.id)

    def _adopt(self, document: Document, person: Person, conflict: Conflict) -> Result:
        """Take over the account that already has the user's name, if the option allows it and the name is proven to be the user's."""
        if not self._options.adopt_on_conflict:
            raise conflict
        if not person.proves_name:
            # An unverified email address proves nothing, so it must never cause a takeover of an existing account.
            self._log("warning", "not adopted: the userName is not proven to be the user's", user_id=person.external_id)
            raise conflict
        found = self._holder_of_name(person, conflict)
        self._log("info", "adopting the existing user with this userName", user_id=person.external_id, scim_id=found.id)
        return self._update(found, document, reason="adopted")

    def _holder_of_name(self, person: Person, conflict: Conflict) -> Match:
        try:
            found = self._client.find_by_user_name(person)
        except (ForeignAccount, UnverifiableMatch) as foreign:
            raise conflict from foreign
        if found is None:
            raise conflict
        return found

    def _person(self, document: Document) -> Person:
        try:
            person = person_of(document, self._table)
        except MappingFailed as error:
            raise DataFailure(f"the user cannot be mapped: {error}") from error
        run = self._run
        is_proven = proves_name(document, person, self._options, strategy=run.strategy, trusted_strategies=run.trusted_strategies)
        return replace(person, proves_name=is_proven)

    def _mapped(self, document: Document, operation: Operation) -> MappedUser:
        try:
            mapped = map_user(document, self._table, operation)
        except MappingFailed as error:
            raise DataFailure(f"the user cannot be mapped: {error}") from error
        if mapped.unusable:
            self._log("warning", "left out: the value has no usable type", paths=", ".join(mapped.unusable), event_id=self._run.event_id)
        return mapped
