"""Reads the data of the admin's start page in one pass: only the data that the staff account may see."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from config.console.dashboard import readings
from config.console.dashboard.readings import DueDelivery, Hours, Kind, Outcomes, StreamState
from config.console.dashboard.viewer import Viewer
from events.models import LogEntry, Outbox
from events.stream.operating.slots import open_streams
from foundation.admin.bounded_paginator import bounded_count
from identity.models import Staff, Tenant, User
from provisioning.engine.stream_flow import hour_starts
from provisioning.models import DeadLetter

COUNT_LIMIT = 10_000
# Open streams are counted for at most this many tenants.
_TENANTS_ASKED = 1_000
_EVENTS_SHOWN = 10


@dataclass
class State:
    """The data of the start page. A member is None if the account may not see it or if it is unknown."""

    now: datetime
    starts: list[datetime]
    counts: dict[str, int] = field(default_factory=dict)
    events: Hours | None = None
    open_streams: int | None = None
    outcomes: Outcomes | None = None
    streams: list[StreamState] = field(default_factory=list)
    # The oldest due delivery of the streams that are not held, then the oldest due delivery of the held streams.
    due: DueDelivery | None = None
    held_due: DueDelivery | None = None
    kinds: list[Kind] | None = None
    failed_sign_ins: Hours | None = None


def read_state(viewer: Viewer) -> State:
    """Read the data that the account may see, of one tenant or of all tenants."""
    now, tenant = timezone.now(), viewer.tenant_id
    state = State(now, hour_starts(now), counts=_counts(viewer))
    if viewer.may_list("events_logentry"):
        state.events = readings.events_by_hour(tenant, state.starts)
        state.open_streams = open_streams([tenant] if tenant else _first_tenants())
    if viewer.may_list("events_eventstream"):
        state.streams = readings.streams(tenant)
    if viewer.may_list("provisioning_delivery"):
        state.outcomes = readings.deliveries(tenant, state.starts[0])
        oldest = {due.is_held: due for due in readings.oldest_due(tenant)}
        state.due, state.held_due = oldest.get(False), oldest.get(True)
    if viewer.may_list("provisioning_deadletter"):
        state.kinds = readings.kinds_of_dead_letters(tenant)
    if viewer.may_list("authapi_signin"):
        state.failed_sign_ins = readings.failed_sign_ins(tenant, state.starts)
    return state


def latest_events(tenant_id: str) -> QuerySet[LogEntry]:
    """Return the newest entries of a tenant's log."""
    rows = LogEntry.objects.filter(tenant_id=tenant_id).select_related("event").defer("event__body")
    return rows.order_by("-tenant_id", "-position")[:_EVENTS_SHOWN]


def counted(count: int) -> str:
    """Return a count for display. `+` marks a count above the limit."""
    return f"{COUNT_LIMIT:,}+" if count > COUNT_LIMIT else f"{count:,}"


def _counts(viewer: Viewer) -> dict[str, int]:
    """Return the number of rows of each model that the account may list. Each count stops at a maximum."""
    # The order of the rows lets PostgreSQL count with an index: by stream and time for all tenants; by tenant, state and id for one tenant.
    letters = DeadLetter.objects.filter(state=DeadLetter.State.OPEN).order_by("stream_id", "created_at")
    if viewer.tenant_id:
        rows: dict[str, QuerySet[User] | QuerySet[DeadLetter] | QuerySet[Tenant] | QuerySet[Outbox] | QuerySet[Staff]] = {
            "identity_user": User.objects.of(viewer.tenant_id),
            "provisioning_deadletter": letters.filter(tenant_id=viewer.tenant_id).order_by("tenant_id", "state", "pk"),
        }
    else:
        rows = {
            "identity_tenant": Tenant.objects.all(),
            "identity_user": User.all_tenants.order_by("pk"),
            "provisioning_deadletter": letters,
            "events_outbox": Outbox.objects.all(),
            "identity_staff": Staff.objects.all(),
        }
    return {model: bounded_count(found, COUNT_LIMIT) for model, found in rows.items() if viewer.may_list(model)}


def _first_tenants() -> list[str]:
    return list(Tenant.objects.order_by("pk").values_list("pk", flat=True)[:_TENANTS_ASKED])
