"""The search form of the log browser, and its translation into a search of `events.log.browsing`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.db.models.functions import Lower
from django.http import QueryDict

from events.log.browsing import Place, Question
from events.record.catalogue import EVENT_TYPES
from foundation.admin.moment_fields import Moment
from foundation.ids import EVENT_ID_PATTERN
from identity.models import User

_MAX_POSITION = 2**63 - 1
_USERS_OF_AN_ADDRESS = 20
# The prefix of an id tells the kind of its document. The id of a user has no prefix, but contains a bar.
_KINDS = {"con_": "connection", "org_": "organization", "grp_": "group"}
_PLACES = ("before", "after")
_RANGE = ("first", "last", "since", "until")


class LogSearch(forms.Form):
    """The search form. Every field is optional; times are UTC."""

    type = forms.ChoiceField(required=False, choices=[("", "All types"), *((name, name) for name in EVENT_TYPES)])
    entity = forms.CharField(
        required=False,
        max_length=400,
        label="Entity or event",
        help_text="An email address, an event id (evt_…), the id of a user, connection, group or organization, or an entity such as "
        "user:database|…",
    )
    first = forms.IntegerField(required=False, min_value=1, max_value=_MAX_POSITION, label="From position")
    last = forms.IntegerField(required=False, min_value=1, max_value=_MAX_POSITION, label="To position")
    since = forms.DateTimeField(required=False, widget=Moment, label="From time")
    until = forms.DateTimeField(required=False, widget=Moment, label="To time")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        for low, high, message in (("first", "last", "position"), ("since", "until", "time")):
            if values.get(low) is not None and values.get(high) is not None and values[low] > values[high]:
                self.add_error(high, f"“To {message}” is before “From {message}”. Enter a later {message}.")
        return values

    @property
    def named(self) -> list[forms.BoundField]:
        """The fields that are always visible."""
        return [self["type"], self["entity"]]

    @property
    def range(self) -> list[forms.BoundField]:
        """The fields that are visible only if the query uses them."""
        return [self[name] for name in _RANGE]

    @property
    def has_range(self) -> bool:
        return any(self.data.get(name) for name in _RANGE)

    @property
    def is_used(self) -> bool:
        return any(value not in ("", None) for value in self.cleaned_data.values())

    def question(self, tenant_id: str | None) -> Question:
        """Return the search for this tenant, or for all tenants."""
        values = self.cleaned_data
        entity = values["entity"]
        is_event = EVENT_ID_PATTERN.fullmatch(entity) is not None
        return Question(
            tenant_id=tenant_id,
            type=values["type"],
            roots=roots_of(entity, tenant_id) if entity and not is_event else None,
            event_id=entity if is_event else "",
            first=values["first"],
            last=values["last"],
            since=_utc(values["since"]),
            until=_utc(values["until"]),
        )


def roots_of(term: str, tenant_id: str | None) -> tuple[str, ...]:
    """Return the entities with this `<kind>:<id>` or this id, or the users with this email address."""
    if "|" in term and not term.startswith(("user:", "organization:", "group:", "connection:")):
        return (f"user:{term}",)
    if "@" in term and ":" not in term:
        if tenant_id is None:
            # Without a tenant, a search by email address would use no index, because every index of users begins with the tenant. So do not
            # search.
            return ()
        found = User.objects.of(tenant_id).alias(address=Lower("email")).filter(address=term.lower())
        return tuple(f"user:{user_id}" for user_id in found.values_list("user_id", flat=True)[:_USERS_OF_AN_ADDRESS])
    return (f"{_KINDS[term[:4]]}:{term}" if term[:4] in _KINDS else term,)


def place_of(query: QueryDict) -> Place | None:
    """Return the place in the log at which the page begins, from the query string. Return None if the query string has no valid place."""
    for name in _PLACES:
        text = query.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 19:
            return Place(int(text), is_newer=name == "after")
    return None


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)
