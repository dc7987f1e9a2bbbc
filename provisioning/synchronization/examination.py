"""One user of a synchronization: found, judged, written or left alone. Stricter than a delivery, since no person watches it.

An answer that holds anybody who was not asked for is not trusted at all: the server does not filter, so what it did not
return proves nothing either.
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
    """Brings users to the server one by one, or only says what it would do."""

    def __init__(self, remote: Remote, plan: Plan) -> None:
        self._remote = remote
        self._plan = plan
        self._rule = match_rule(plan.match)

    def examine(self, document: dict[str, Any], position: int) -> Finding:
        """Bring one user to the server; raise a subclass of `ActionError` when the server failed.

        `position` is one of the log that is no newer than the document.

        1. A user outside the scope, or without a correlation key or user name, is skipped, as its events are.
        2. The account that carries our `externalId`, or that is linked to the user, is updated, unless it equals what would be written.
        3. Otherwise the one account that the match rule trusts is linked: an update that also sets `externalId`.
        4. Otherwise the user is created, if nobody holds its user name.
        """
        user_id = str(document["user_id"])
        if (skip := self.outside(document)) is not None:
            return skip
        try:
            return self._examined(user_id, document, position)
        except (AmbiguousMatch, UnverifiableMatch) as failure:
            return Finding(Outcome.AMBIGUOUS, user_id, reason=self._said(failure), error_class=failure.class_name)
        except EventOutdated:
            return Finding(Outcome.SKIPPED, user_id, reason="changed here meanwhile")
        except (ForeignAccount, Conflict) as failure:
            return Finding(Outcome.SKIPPED, user_id, reason=f"foreign account: {self._said(failure)}", error_class=failure.class_name)

    def outside(self, document: dict[str, Any]) -> Finding | None:
        """Return how a user ends whom the action is not about, without a request; None for any other."""
        if is_in_scope(document, self._remote.options.scope):
            return None
        return Finding(Outcome.SKIPPED, str(document["user_id"]), reason=OUTSIDE)

    def withdraw(self, document: dict[str, Any], position: int) -> Finding:
        """Delete the account of a user that was deleted here while it was being written; its event may have come too early."""
        self.delete(self._remote.person(document), str(document["user_id"]), position)
        return Finding(Outcome.SKIPPED, str(document["user_id"]), reason="deleted here meanwhile")

    def delete(self, person: Person, user_id: str, position: int, scim_id: str = "") -> bool:
        """Delete the account of a user that is gone; False when it is not there, or has another id than expected."""
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
            # A server that keeps the key and never returns it, or does not keep it.
            found = [difference for difference in found if difference.path != "externalId"]
        told = [self._told(difference) for difference in found]
        if not found:
            return Finding(Outcome.UNCHANGED, user_id, held.id)
        if self._plan.only_reports:
            return Finding(Outcome.DIFFERENT, user_id, held.id, differences=told)
        if not self._plan.writes and any(difference.path == USER_NAME for difference in found):
            # A write would be answered with 409.
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
        """Return the account that is the user by its key or by its link; a name is judged by the match rule, not here.

        Raises `UnverifiableMatch` when the answer holds an account that the filter did not ask for.
        """
        match = client.find(replace(person, proves_name=True))
        if client.has_met_strangers:
            raise UnverifiableMatch(detail="the externalId filter returned accounts that were not asked for")
        return match if match is not None and match.proof != "userName" else None

    def _trusted(self, client: ScimClient, person: Person, document: dict[str, Any]) -> Resource | None:
        """Return the one account without a key that the match rule says is this user."""
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
        # Already linked by another user, or by another directory: two people with one number are for a person to sort out.
        strangers = [item for item in equal if item.get("externalId")]
        if strangers:
            raise ForeignAccount(detail=f"{rule.path.text} belongs to id {str(strangers[0]['id'])[:64]}")
        return _single(equal)

    def _refuse_taken_name(self, client: ScimClient, person: Person) -> None:
        """Raise unless nobody holds the user name: a POST would be refused, or worse, answered with a second account."""
        try:
            found = client.filtered("userName", person.user_name)
        except FilterRefused:
            # The server judges by itself, when it is asked to create the user.
            return
        for item in _only(found, "userName", lambda item: has_name(item, person.user_name)):
            raise ForeignAccount(detail=f"userName is held by id {str(item['id'])[:64]}, which the match rule does not trust")

    def _told(self, difference: Difference) -> dict[str, Any]:
        values = {"here": difference.here, "there": difference.there}
        if not self._plan.shows_values:
            values = {name: None if value is None else MASKED for name, value in values.items()}
        return {"path": difference.path, **self._remote.mask.value(values)}

    def _said(self, failure: DataFailure) -> str:
        return self._remote.mask.text(f"{failure}; {failure.detail}" if failure.detail else str(failure))


def _only(found: list[dict[str, Any]], attribute: str, is_asked_for: Any) -> list[dict[str, Any]]:
    """Return what was found when every element of it was asked for; raise `UnverifiableMatch` when the server does not filter."""
    strangers = [item for item in found if not is_asked_for(item)]
    if strangers:
        raise UnverifiableMatch(detail=f"the {attribute} filter returned {len(strangers)} accounts that were not asked for")
    return found


def _single(found: list[dict[str, Any]]) -> dict[str, Any] | None:
    if len(found) > 1:
        raise AmbiguousMatch(detail=f"ids {', '.join(str(item['id'])[:64] for item in found[:10])}")
    return found[0] if found else None


def _holds(item: Resource, rule: MatchRule, value: str) -> bool:
    return any(rule.is_equal(found, value) for found in values_at(item, rule.path))
