"""What each user event does to the SCIM server. The rules are the spec's: "Requests made by the provisioning action"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioning.failures import DataFailure
from provisioning.mapping import MappedUser, MappingFailed, MappingRow, Operation, Person, map_user, person_of
from provisioning.results import Result, delivered, skipped
from provisioning.scim import patch
from provisioning.scim.client import ForeignAccount, Log, ScimClient
from provisioning.scim.matches import Match
from provisioning.scim.options import ScimOptions
from provisioning.scim.refusals import Conflict, ResourceGone

Document = Mapping[str, Any]


def update_request(options: ScimOptions, mapped: MappedUser) -> tuple[str, dict[str, Any]]:
    """Return verb and body of an update in the mode of the options."""
    if options.update_mode == "put":
        return "PUT", mapped.resource
    if options.update_mode == "patch":
        return "PATCH", patch.whole_user(mapped.resource)
    return "PATCH", patch.per_attribute(mapped.resource, mapped.removed)


class UserSync:
    """Brings one user of one event to one server. `is_repetition`: an earlier attempt may have reached it."""

    def __init__(
        self, client: ScimClient, table: tuple[MappingRow, ...], options: ScimOptions, log: Log, *, event_id: str, is_repetition: bool
    ) -> None:
        self._client = client
        self._table = table
        self._options = options
        self._log = log
        self._event_id = event_id
        self._is_repetition = is_repetition

    def created(self, document: Document) -> Result:
        """POST the mapped user; a user without the property mapped to `userName` is skipped (spec, mapping rule 1)."""
        person = self._person(document)
        if (skip := self._unidentified(person, document, "create")) is not None:
            return skip
        return self._create(document, person, reason="created", is_repetition=self._is_repetition)

    def updated(self, document: Document) -> Result:
        """Look the user up, then write the whole mapped user; a missing one is skipped or, with upsert, created.

        When the server says that the resource it has just returned is gone, the user is looked up once more.
        """
        person = self._person(document)
        if (skip := self._unidentified(person, document, "update")) is not None:
            return skip
        found = self._client.find(person)
        if found is None:
            return self._missing(document, person)
        try:
            return self._update(found.id, document)
        except ResourceGone:
            again = self._client.find(person)
            if again is None:
                return self._missing(document, person)
            if again.id == found.id:
                raise
            return self._update(again.id, document)

    def deleted(self, document: Document) -> Result:
        """Look the user up, then DELETE; a user that is not there is done. A user without an e-mail is deleted too."""
        person = self._person(document)
        if not person.external_id:
            self._log("warning", "delete skipped: no externalId", event_id=self._event_id)
            return skipped("missing externalId")
        found = self._client.find(person)
        if found is None:
            return skipped("no user to delete", user_id=person.external_id)
        is_ours = self._client.delete(found.id, person)
        ids = {"user_id": person.external_id, "scim_id": found.id}
        return delivered("deleted", **ids) if is_ours else skipped("already gone", **ids)

    def _unidentified(self, person: Person, document: Document, verb: str) -> Result | None:
        if not person.external_id:
            self._log("warning", f"{verb} skipped: no externalId", event_id=self._event_id)
            return skipped("missing externalId")
        if not person.user_name:
            self._log("warning", f"{verb} skipped: no userName", event_id=self._event_id, user_id=document.get("user_id"))
            return skipped("missing userName", user_id=person.external_id)
        return None

    def _missing(self, document: Document, person: Person) -> Result:
        if self._options.upsert:
            # The lookup of a moment ago found nothing: no second one is needed before the POST.
            return self._create(document, person, reason="created-from-update", is_repetition=False)
        self._log("warning", "update skipped: no matching user, upsert is off", event_id=self._event_id, user_id=person.external_id)
        return skipped("no user to update", user_id=person.external_id)

    def _create(self, document: Document, person: Person, *, reason: str, is_repetition: bool) -> Result:
        mapped = self._mapped(document, "create")
        try:
            created = self._client.create(mapped.resource, person, is_repetition=is_repetition)
        except Conflict as conflict:
            return self._adopt(document, person, conflict)
        if created.is_new:
            return delivered(reason, user_id=person.external_id, scim_id=created.id)
        if reason != "created":
            return self._update(created.id, document)
        if is_repetition:
            # Not a skip: a redelivery of something older must see that this event was written.
            return delivered("created by an earlier attempt", user_id=person.external_id, scim_id=created.id)
        return skipped("duplicate delivery", user_id=person.external_id, scim_id=created.id)

    def _update(self, resource_id: str, document: Document, *, reason: str = "updated") -> Result:
        verb, body = update_request(self._options, self._mapped(document, "update"))
        if verb == "PUT":
            self._client.replace(resource_id, body)
        else:
            self._client.patch(resource_id, body)
        return delivered(reason, user_id=self._person(document).external_id, scim_id=resource_id)

    def _adopt(self, document: Document, person: Person, conflict: Conflict) -> Result:
        """Take over the resource that holds our user name, when the option says so and the address is verified."""
        if not self._options.adopt_on_conflict:
            raise conflict
        if document.get("email_verified") is not True or str(document.get("email", "")).casefold() != person.user_name.casefold():
            # Anybody may sign up with somebody else's address: an unverified one must not open an existing account.
            self._log("warning", "not adopted: the userName is not a verified e-mail address", user_id=person.external_id)
            raise conflict
        found = self._holder_of_name(person, conflict)
        self._log("info", "adopting the existing user with this userName", user_id=person.external_id, scim_id=found.id)
        return self._update(found.id, document, reason="adopted")

    def _holder_of_name(self, person: Person, conflict: Conflict) -> Match:
        try:
            found = self._client.find_by_user_name(person)
        except ForeignAccount as foreign:
            raise conflict from foreign
        if found is None:
            raise conflict
        return found

    def _person(self, document: Document) -> Person:
        try:
            return person_of(document, self._table)
        except MappingFailed as error:
            raise DataFailure(f"the user cannot be mapped: {error}") from error

    def _mapped(self, document: Document, operation: Operation) -> MappedUser:
        try:
            mapped = map_user(document, self._table, operation)
        except MappingFailed as error:
            raise DataFailure(f"the user cannot be mapped: {error}") from error
        if mapped.unusable:
            self._log("warning", "left out: the value has no usable type", paths=", ".join(mapped.unusable), event_id=self._event_id)
        return mapped
