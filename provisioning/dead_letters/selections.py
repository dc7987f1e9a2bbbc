"""Selections of dead letters, shared by lists, exports and redelivery jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from provisioning.dead_letters.triage import UNSETTLED
from provisioning.models import DeadLetter

# The default selection of the management interface. Ignored dead letters are redelivered only if a request selects this state.
_WANTED_STATES = (DeadLetter.State.OPEN, DeadLetter.State.ACKNOWLEDGED)
_EQUAL = ("key", "error_class", "error_scim_type", "fingerprint")
_MOMENTS = ("created_from", "created_to", "died_from", "died_to")


@dataclass(frozen=True)
class Selection:
    """Conditions on dead letters of a stream; by default, they select open and acknowledged dead letters.

    `created_*` limits the time when the delivery was created. `died_*` limits the time when the delivery became a dead letter. The end of
    each range is excluded. If `error_status` is 0, it selects dead letters without an HTTP status.
    """

    created_from: datetime | None = None
    created_to: datetime | None = None
    event_types: tuple[str, ...] = ()
    fingerprint: str = ""
    event_id: str = ""
    key: str = ""
    error_class: str = ""
    error_status: int | None = None
    error_scim_type: str = ""
    died_from: datetime | None = None
    died_to: datetime | None = None
    states: tuple[str, ...] = ()

    def narrow(self, letters: QuerySet[DeadLetter]) -> QuerySet[DeadLetter]:
        """Return the dead letters among `letters` that match the conditions. Does not check `states`."""
        equal = {name: getattr(self, name) for name in _EQUAL if getattr(self, name)}
        if self.event_id:
            # Deliveries have an index for this condition.
            equal["delivery__event_id"] = self.event_id
        if self.event_types:
            equal["event_type__in"] = self.event_types
        if self.error_status is not None:
            equal["error_status"] = self.error_status or None
        times = {
            "delivery__created_at__gte": self.created_from,
            "delivery__created_at__lt": self.created_to,
            "created_at__gte": self.died_from,
            "created_at__lt": self.died_to,
        }
        return letters.filter(**equal, **{name: moment for name, moment in times.items() if moment is not None})

    def of(self, *, tenant_id: str, stream_id: str) -> QuerySet[DeadLetter]:
        """Return the selected dead letters of a stream that a redelivery would send."""
        states = [state for state in self.states if state in UNSETTLED] if self.states else list(_WANTED_STATES)
        return self.narrow(DeadLetter.objects.filter(tenant_id=tenant_id, stream_id=stream_id, state__in=states))

    def as_document(self) -> dict[str, Any]:
        """Return the selection as the JSON object stored in its job."""
        named = {name: value for name, value in asdict(self).items() if value not in (None, "", ())}
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in named.items()}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Selection:
        """Parse the result of `as_document`."""
        known = {field.name for field in fields(cls)}
        values = {name: value for name, value in document.items() if name in known}
        values |= {name: datetime.fromisoformat(values[name]) for name in _MOMENTS if name in values}
        values |= {name: tuple(values[name]) for name in ("event_types", "states") if name in values}
        return cls(**values)
