"""Examines one user of a synchronization: finds, compares and writes the account. The rules are stricter than the rules of a delivery.

If an answer contains an account that does not match the filter, the server has ignored the filter. Such an answer proves nothing: an
account that is missing in the answer may exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from provisioning.actions.scope import OUTSIDE, is_in_scope
from provisioning.mapping.paths import parse_path
from provisioning.mapping.table import Person
from provisioning.runs.failures import DataFailure
from provisioning.scim.client import EventOutdated, ScimClient
from provisioning.scim.lookups import AmbiguousMatch, ForeignAccount, UnverifiableMatch
from provisioning.scim.matches import Match, has_name
from provisioning.scim.reading import Difference, differences, filter_attribute, values_at
from provisioning.scim.refusals import Conflict, FilterRefused
from provisioning.scim.user_sync import update_request
from provisioning.synchronization.findings import Finding, Outcome
from provisioning.synchronization.plan import USER_NAME, MatchRule, Plan, match_rule
from provisioning.synchronization.remote import Remote

Resource = Mapping[str, Any]
MASKED = "***"


class Examiner:
    """Synchronizes users one by one, or only reports the changes."""

    def __init__(self, remote: Remote, plan: Plan) -> None:
        self._remote = remote
        self._plan = plan
        self._rule = match_rule(plan.match)

    def examine(self, document: dict[str, Any], position: int) -> Finding:
        """Synchronize one user; raise a subclass of `ActionError` if a request failed.

        `position` is a position of the log that is not newer than the document.

        1. Skip a user who is outside the scope, or for whom the mapping yields no `externalId` or no user name. Deliveries skip such a
           user, too.
        2. If an account has our `externalId` or is linked to the user: update it, unless all of its values are equal.
        3. If there is no such account: link the one account that the match rule finds, with an update that also sets `externalId`.
        4. If the match rule finds no account: create the user, unless an account has the user name already.

        A dry run reports the same outcomes and writes nothing. A comparison only reports the differences in step 2. Instead of steps 3 and
        4, it reports that the user has no account.
        """
        user_id = str(document["user_id"])
        if (skip := self.outside(document)) is not None:
            return skip
        try:
            return self._examined(user_id, document, position)
        except (AmbiguousMatch, UnverifiableMatch) as failure:
            return Finding(Outcome.AMBIGUOUS, user_id, reason=self._said(failure), error_class=failure.class_name)
        except EventOutdated:
            return Finding(Outcome.SKIPPED, user_id, reason="changed meanwhile")
        except (ForeignAccount, Conflict) as failure:
            return Finding(Outcome.SKIPPED, user_id, reason=f"foreign account: {self._said(failure)}", error_class=failure.class_name)

    def outside(self, document: dict[str, Any]) -> Finding | None:
        """Return the finding for a user outside the scope, without a request; None for any other user."""
        if is_in_scope(document, self._remote.options.scope):
            return None
        return Finding(Outcome.SKIPPED, str(document["user_id"]), reason=OUTSIDE)

    def withdraw(self, document: dict[str, Any], position: int) -> Finding:
        """Delete the account of a user who was deleted meanwhile. If the stream deleted the account before this synchronization wrote it,
        the write has created the account again.
        """
        self.delete(self._remote.person(document), str(document["user_id"]), position)
        return Finding(Outcome.SKIPPED, str(document["user_id"]), reason="deleted meanwhile")

    def delete(self, person: Person, user_id: str, position: int, scim_id: str = "") -> bool:
        """Delete the account of a deleted user; return False if the account does not exist, or has another id than expected."""
        with self._remote.client(user_id, position) as client:
            held = self._ours(client, person)
            if held is None or (scim_id and held.id != scim_id):
                return False
            client.delete(held, person)
            client.links.deleted()
        return True

    def _examined(self, user_id: str, document: dict[str, Any], position: int) -> Finding:
        person = self._remote.person(document)
        if not person.external_id or not person.user_name:
            return Finding(Outcome.SKIPPED, user_id, reason=f"missing {'userName' if person.external_id else 'externalId'}")
        with self._remote.client(user_id, position) as client:
            held = self._ours(client, person)
            if client.links.is_stale:
                raise EventOutdated
            if held is not None:
                return self._aligned(client, user_id, document, held, person)
            if self._plan.only_reports:
                return Finding(Outcome.MISSING, user_id)
            trusted = self._trusted(client, person, document)
            if trusted is not None:
                return self._linked(client, user_id, document, trusted, person)
            return self._created(client, user_id, document, person)

    def _aligned(self, client: ScimClient, user_id: str, document: dict[str, Any], held: Match, person: Person) -> Finding:
        mapped = self._remote.mapped(document, "update")
        found = differences(mapped, held.resource, self._remote.table, clears=self._remote.options.update_mode == "put")
        if not held.resource.get("externalId"):
            # The server does not store or does not return the key (`externalId`). So a missing key is no difference.
            found = [difference for difference in found if difference.path != "externalId"]
        told = [self._told(difference) for difference in found]
        if not found:
            return Finding(Outcome.UNCHANGED, user_id, held.id)
        if self._plan.only_reports:
            return Finding(Outcome.DIFFERENT, user_id, held.id, differences=told)
        if not self._plan.writes and any(difference.path == USER_NAME for difference in found):
            # A dry run sends no update. If another account has the new user name, an update would fail with 409, so check this here.
            self._refuse_taken_name(client, person)
        return Finding(Outcome.UPDATED, user_id, held.id, differences=told, is_written=self._written(client, held, document, person))

    def _linked(self, client: ScimClient, user_id: str, document: dict[str, Any], trusted: Resource, person: Person) -> Finding:
        client.links.look([trusted["id"]])
        if client.links.is_rival(trusted):
            raise ForeignAccount(detail=f"id {str(trusted['id'])[:64]} is linked to another user")
        match = Match(str(trusted["id"]), "userName", trusted, origin="synchronized")
        return Finding(Outcome.LINKED, user_id, match.id, is_written=self._written(client, match, document, person))

    def _created(self, client: ScimClient, user_id: str, document: dict[str, Any], person: Person) -> Finding:
        self._refuse_taken_name(client, person)
        mapped = self._remote.mapped(document, "create")
        if not self._plan.writes:
            return Finding(Outcome.CREATED, user_id)
        made = client.create(mapped.resource, person, is_repetition=False)
        return Finding(Outcome.CREATED, user_id, made.id, is_written=True)

    def _written(self, client: ScimClient, match: Match, document: dict[str, Any], person: Person) -> bool:
        verb, body = update_request(self._remote.options, self._remote.mapped(document, "update"))
        if self._plan.writes:
            write = client.replace if verb == "PUT" else client.patch
            client.once_more_if_changed(person, match, lambda found: write(found, body, person))
        return self._plan.writes

    def _ours(self, client: ScimClient, person: Person) -> Match | None:
        """Return the account that the key or a link proves. Only the match rule uses user names.

        Raises `UnverifiableMatch` if the answer contains an account that does not match the filter.
        """
        match = client.find(replace(person, proves_name=True))
        if client.has_met_strangers:
            raise UnverifiableMatch(detail="the externalId filter returned accounts that do not match")
        return match if match is not None and match.proof != "userName" else None

    def _trusted(self, client: ScimClient, person: Person, document: dict[str, Any]) -> Resource | None:
        """Return the one account that the match rule assigns to this user and that has no key (`externalId`) yet."""
        rule = self._rule
        value = rule.value_of(document) if rule else ""
        if (
            rule is None
            or not value
            or (rule.path == parse_path(USER_NAME) and not rule.source and not rule.is_equal(person.user_name, value))
        ):
            return None
        found = client.filtered(filter_attribute(rule.path), value)
        equal = _only(found, rule.path.text, lambda item: _holds(item, rule, value))
        # An account with an `externalId` is linked to another user, or managed by another directory. An administrator must resolve this
        # conflict.
        strangers = [item for item in equal if item.get("externalId")]
        if strangers:
            raise ForeignAccount(detail=f"{rule.path.text} belongs to id {str(strangers[0]['id'])[:64]}")
        return _single(equal)

    def _refuse_taken_name(self, client: ScimClient, person: Person) -> None:
        """Raise a failure if an account has the user name, because the server would refuse a POST, or create a duplicate account."""
        try:
            found = client.filtered("userName", person.user_name)
        except FilterRefused:
            # The name cannot be searched. The server itself checks the name when the user is created.
            return
        for item in _only(found, "userName", lambda item: has_name(item, person.user_name)):
            raise ForeignAccount(
                detail=f"the account with the id {str(item['id'])[:64]} has the userName, and the match rule does not trust this account"
            )

    def _told(self, difference: Difference) -> dict[str, Any]:
        values = {"here": difference.here, "there": difference.there}
        if not self._plan.shows_values:
            values = {name: None if value is None else MASKED for name, value in values.items()}
        return {"path": difference.path, **self._remote.mask.value(values)}

    def _said(self, failure: DataFailure) -> str:
        return self._remote.mask.text(f"{failure}; {failure.detail}" if failure.detail else str(failure))


def _only(found: list[dict[str, Any]], attribute: str, is_asked_for: Any) -> list[dict[str, Any]]:
    """Return the accounts in an answer if all of them match the filter; raise `UnverifiableMatch` if the server has ignored the filter."""
    strangers = [item for item in found if not is_asked_for(item)]
    if strangers:
        raise UnverifiableMatch(detail=f"the {attribute} filter returned {len(strangers)} accounts that do not match")
    return found


def _single(found: list[dict[str, Any]]) -> dict[str, Any] | None:
    if len(found) > 1:
        raise AmbiguousMatch(detail=f"ids {', '.join(str(item['id'])[:64] for item in found[:10])}")
    return found[0] if found else None


def _holds(item: Resource, rule: MatchRule, value: str) -> bool:
    return any(rule.is_equal(found, value) for found in values_at(item, rule.path))
