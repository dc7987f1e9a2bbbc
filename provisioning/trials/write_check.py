"""The write check: creates a test user, updates it in every mode, reads it after each update, and deletes it.

The answer to a write does not prove that the server stored the values, so every step reads the user and compares the values.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from provisioning.mapping.table import MappedUser, MappingFailed, Person, map_user, person_of
from provisioning.runs.failures import ActionError, DataFailure, InvalidResponseShape
from provisioning.scim.client import if_match_of
from provisioning.scim.lookups import user_path
from provisioning.scim.matches import Match
from provisioning.scim.refusals import PreconditionFailed, ResourceGone
from provisioning.scim.transport import Request
from provisioning.scim.user_sync import update_request
from provisioning.trials.steps import Finding, Step, counted, failed

if TYPE_CHECKING:
    from provisioning.trials.scim_sessions import ScimSession

MARK = "identity-canary"
_MODES = {"put": "Update by PUT", "patch": "Update by PATCH without a path", "patch_per_attribute": "Update by PATCH per attribute"}
_OUTDATED = 'W/"never-a-version"'
# The modes in order of preference: PUT clears empty attributes, PATCH per attribute can remove them, and PATCH without a path keeps them.
_RECOMMENDED = ("put", "patch_per_attribute", "patch")
_LEFT_BEHIND = f"Delete the test user on the server: its userName starts with {MARK}."
_NOT_TRIED = "Not run: the server is not reachable or not usable."


class WriteCheck:
    """The test user on one server. The user is deleted even if an earlier step fails."""

    def __init__(self, session: ScimSession) -> None:
        self._session = session
        self._key = f"{MARK}|{secrets.token_hex(8)}"
        self._id = ""
        self._good_modes: list[str] = []

    @property
    def steps(self) -> list[Step]:
        return [
            Step("create", "Create a marked user", self._create, is_needed=True, not_taken=_NOT_TRIED),
            Step("find", "Find the test user by externalId", self._find),
            *(Step(mode, title, partial(self._update, mode, number)) for number, (mode, title) in enumerate(_MODES.items(), start=1)),
            Step("if_match", "Refusal of an outdated write", self._write_outdated),
            Step("delete", "Delete the test user", self._delete, cleans_up_after="create"),
            Step("recommendation", "Recommended update mode", self._recommend),
        ]

    @property
    def recommended_mode(self) -> str:
        """The recommended update mode; empty if no mode works."""
        return next((mode for mode in _RECOMMENDED if mode in self._good_modes), "")

    def _create(self) -> Finding:
        mapped, person = self._mapped(0, "create"), self._person(0)
        self._id = self._session.client.create(mapped.resource, person, is_repetition=False).id
        dropped = _differences(mapped.resource, self._stored())
        if dropped:
            advice = "The server drops or changes these attributes. Remove their rows from the mapping if this is intended."
            return Finding(f"Created, but not stored as sent: {', '.join(dropped)}.", "warning", advice, {"not_kept": dropped})
        return Finding("Created and stored as sent.")

    def _find(self) -> Finding:
        found = self._session.client.filtered("externalId", self._key)
        if not any(item["id"] == self._id for item in found):
            advice = "Updates and deletions will not find their users. The server must store externalId and search by it."
            return Finding(f"The search returned {counted(len(found), 'user')}, but not the marked user.", "failed", advice)
        if len(found) > 1:
            advice = "The service verifies each match before a write, so it changes no other user."
            return Finding(f"Found among {len(found)} users: the filter is not exact.", "warning", advice)
        return Finding("Found, and no other user was returned.")

    def _update(self, mode: str, number: int) -> Finding:
        mapped = self._mapped(number, "update")
        verb, body = update_request(replace(self._session.options, update_mode=mode), mapped)
        try:
            if verb == "PUT":
                self._session.client.replace(self._match(), body, self._person(number))
            else:
                self._session.client.patch(self._match(), body, self._person(number))
        except ActionError as error:
            # Servers may lack some modes. The last step checks that at least one mode works.
            return replace(failed(error), state="warning")
        stored = self._stored()
        wrong = _differences(mapped.resource, stored)
        if wrong:
            advice = "Do not use this update mode: the server answered with success, but stored other values."
            return Finding(f"Accepted, but stored wrongly: {', '.join(wrong)}.", "warning", advice, {"wrong": wrong})
        self._good_modes.append(mode)
        return Finding("Every attribute is stored as sent, without duplicates.")

    def _write_outdated(self) -> Finding:
        """Test whether the server honors `If-Match` (RFC 7644, 3.14). If it does, a write fails if the account was changed after the
        service checked it.
        """
        name = if_match_of(self._session.transport.server)
        meta = self._stored().get("meta")
        if not isinstance(meta, dict) or not meta.get("version"):
            self._session.capabilities.note(name, finding=False)
            return Finding("The server returns no version of its users, so If-Match cannot be used.", "skipped")
        body, path = self._mapped(len(_MODES), "update").resource, user_path(self._id)
        try:
            self._session.transport.send(Request("PUT", path, "/Users/{id}", path, body, if_match=_OUTDATED))
        except PreconditionFailed:
            self._session.capabilities.note(name, finding=True)
            return Finding("The server refuses a write with an outdated If-Match, so deliveries use If-Match.")
        except ActionError as error:
            return replace(failed(error), state="warning")
        self._session.capabilities.note(name, finding=False)
        return Finding("The server accepts a write with an outdated If-Match, so deliveries do not use If-Match.")

    def _delete(self) -> Finding:
        if not self._id:
            self._id = self._id_after_all()
        if not self._id:
            return Finding("No test user exists.", "skipped")
        try:
            self._session.client.delete(self._match(), Person(self._key, ""))
        except ActionError as error:
            return replace(failed(error), text=f"{error}. The test user may still exist.", advice=_LEFT_BEHIND)
        return self._gone()

    def _gone(self) -> Finding:
        try:
            stored = self._stored()
        except ResourceGone:
            return Finding("Deleted; a read returns 404.")
        except ActionError as error:
            advice = "For a deleted user, the server should return the status 404 with a SCIM error."
            return Finding(f"Deleted. A read fails without a SCIM error: {error}.", "warning", advice)
        if stored.get("active") is False:
            return Finding("The server has deactivated the user instead of deleting it. The service accepts this.", "warning", _LEFT_BEHIND)
        return Finding("The server reported that it deleted the user, but still returns the user.", "failed", _LEFT_BEHIND)

    def _recommend(self) -> Finding:
        mode, used = self.recommended_mode, self._session.options.update_mode
        if not mode:
            return Finding("No update mode works.", "failed", "Users can be created and deleted on this server, but not updated.")
        if mode == used:
            return Finding(f"The action uses {mode}, which works.")
        return Finding(f"Use {mode}.", "warning", f"Set update_mode to {mode}: the action uses {used}.")

    def _id_after_all(self) -> str:
        """Return the id of a user that exists although the create request failed."""
        try:
            found = self._session.client.filtered("externalId", self._key)
        except ActionError:
            return ""
        ours = [item["id"] for item in found if item.get("externalId") == self._key]
        return ours[0] if len(ours) == 1 else ""

    def _match(self) -> Match:
        """Return a match that contains only the id of the test user."""
        return Match(self._id, "externalId", {})

    def _stored(self) -> dict[str, Any]:
        answer = self._session.transport.send(Request("GET", user_path(self._id), "/Users/{id}", user_path(self._id)))
        try:
            document = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise InvalidResponseShape("invalid response shape: the user is not JSON", status=answer.status) from error
        if not isinstance(document, dict) or document.get("id") != self._id:
            raise InvalidResponseShape("invalid response shape: the answer is not the requested user", status=answer.status)
        return document

    def _person(self, number: int) -> Person:
        try:
            person = person_of(self._document(number), self._session.table)
        except MappingFailed as error:
            raise DataFailure(f"the test user cannot be mapped: {error}") from error
        return Person(self._key, person.user_name)

    def _mapped(self, number: int, operation: Any) -> MappedUser:
        """Map the test user with the mapping table of the action, so that the check covers the attributes in this table. externalId is
        always the key of the test user.
        """
        try:
            mapped = map_user(self._document(number), self._session.table, operation)
        except MappingFailed as error:
            raise DataFailure(f"the test user cannot be mapped: {error}") from error
        return replace(mapped, resource={**mapped.resource, "externalId": self._key})

    def _document(self, number: int) -> dict[str, Any]:
        """Return a user document with all attributes of a profile. The values differ for each `number`."""
        name = self._key.replace("|", "-")
        return {
            "user_id": self._key,
            "email": f"{name}-{number}@canary.invalid",
            "email_verified": True,
            "username": f"{name}-{number}",
            "name": f"Canary {number} Delete Me",
            "given_name": f"Canary {number}",
            "family_name": f"Delete Me {number}",
            "nickname": f"{MARK}-{number}",
            "phone_number": f"+1555010{number:04}",
            "picture": f"https://canary.invalid/{number}.png",
            # The user is active before the deletion, so that the check detects a server that deactivates a user instead of deleting it.
            "blocked": number == 1,
            "identities": [],
            "user_metadata": {"phone": f"+1555010{number:04}"},
            "app_metadata": {
                "employee_number": f"C{number}",
                "cost_center": f"Canary {number}",
                "organization": f"Canary {number}",
                "division": f"Canary {number}",
                "department": f"Canary {number}",
            },
        }


def _differences(sent: Any, stored: Any, place: str = "") -> list[str]:
    """Return the paths at which `stored` differs from `sent`. Additional attributes are ignored, but additional list elements are
    differences."""
    if isinstance(sent, Mapping):
        if not isinstance(stored, Mapping):
            return [place]
        return [
            wrong
            for name, value in sent.items()
            if name != "schemas"
            for wrong in _differences(value, _member(stored, name), f"{place}.{name}" if place else name)
        ]
    if isinstance(sent, list):
        if not isinstance(stored, list) or len(stored) != len(sent):
            return [f"{place} ({len(stored) if isinstance(stored, list) else 'no list'} instead of {len(sent)})"]
        pairs = zip(sorted(sent, key=_type_of), sorted(stored, key=_type_of), strict=True)
        return [wrong for ours, theirs in pairs for wrong in _differences(ours, theirs, place)]
    if isinstance(sent, str) and isinstance(stored, str):
        # userName is case-insensitive, and servers may store it in another case (RFC 7643, 4.1.1).
        return [] if sent == stored or (place in {"userName", "emails.value"} and sent.casefold() == stored.casefold()) else [place]
    return [place] if type(sent) is not type(stored) or sent != stored else []


def _member(stored: Mapping[str, Any], name: str) -> Any:
    """Return a member by its name, compared case-insensitively (RFC 7643, 2.1)."""
    if name in stored:
        return stored[name]
    return next((value for key, value in stored.items() if key.lower() == name.lower()), None)


def _type_of(element: Any) -> str:
    return str(element.get("type", "")) if isinstance(element, Mapping) else str(element)
