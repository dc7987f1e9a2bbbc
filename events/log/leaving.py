"""Checks the event log before a tenant is exported: every event must have a position, and every change must be recorded."""

from __future__ import annotations

from events.models import Mark, Outbox
from identity.moving.carrying import carry


def unfinished(tenant_id: str) -> list[str]:
    """Return a sentence about events without a position, if there are any, and a sentence about unrecorded changes, if there are any."""
    found = []
    if waiting := Outbox.objects.filter(tenant_id=tenant_id).count():
        found.append(f"{waiting:,} events have no position in the log yet; a running worker gives them one.")
    if marks := Mark.objects.filter(tenant_id=tenant_id).count():
        found.append(f"{marks:,} changes are not recorded as events yet; the sweep of a running worker records them.")
    return found


def declare() -> None:
    """Declare how a move copies the tables of events."""
    carry(
        "events",
        left_behind={"Outbox": "The outbox is empty before an export.", "Mark": "No marks exist before an export."},
        # The number of a timeline has a meaning only within one PostgreSQL cluster. The first numbering on the target server stores the
        # timeline of that server.
        cleared={"Head": ("timeline",)},
        filled_by_triggers=("Mark",),
    )
