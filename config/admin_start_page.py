"""The figures of the admin's start page. Each is counted by an index or up to a limit, so the page costs the same for every tenant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from events.models import EventStream, Head, LogEntry, Outbox
from identity.admin.bounded_paginator import bounded_count
from identity.models import Connection, Staff, Tenant, User
from provisioning.models import DeadLetter, Lane

COUNT_LIMIT = 100_000
_SHOWN = 10


@dataclass(frozen=True)
class Figure:
    """One number with the list that it counts; `tone` colours what asks for attention."""

    label: str
    value: str
    url: str
    note: str = ""
    tone: str = ""


def figures_of(tenant_id: str) -> list[Figure]:
    """Return the figures of one tenant."""
    head = Head.objects.filter(pk=tenant_id).first()
    streams = list(EventStream.objects.of(tenant_id).values_list("pk", flat=True))
    open_letters = DeadLetter.objects.filter(tenant_id=tenant_id, state=DeadLetter.State.OPEN)
    due = Lane.objects.filter(stream_id__in=streams, not_before__lte=timezone.now())
    return [
        Figure("Users", _count(User.objects.of(tenant_id)), _list("identity_user")),
        Figure("Events today", f"{events_since(tenant_id, _midnight()):,}", _list("events_logentry"), "since midnight UTC"),
        _attention("Open dead letters", open_letters, _list("provisioning_deadletter", "state__exact=open")),
        Figure("Due deliveries", _count(due), _list("provisioning_lane"), "users and connections whose turn it is"),
        Figure("Head position", f"{head.position:,}" if head else "none", _list("events_logentry"), "the last event of the log"),
    ]


def figures_of_all() -> list[Figure]:
    """Return the figures of the platform."""
    return [
        Figure("Tenants", _count(Tenant.objects.all()), _list("identity_tenant")),
        Figure("Users", _count(User.all_tenants.order_by("pk")), _list("identity_user"), "of all tenants"),
        _attention(
            "Open dead letters",
            DeadLetter.objects.filter(state=DeadLetter.State.OPEN),
            _list("provisioning_deadletter", "state__exact=open"),
        ),
        Figure("Due deliveries", _count(Lane.objects.filter(not_before__lte=timezone.now())), _list("provisioning_lane")),
        Figure("Without a position yet", _count(Outbox.objects.all()), _list("events_outbox"), "events the numberer has not reached"),
        Figure("Staff accounts", _count(Staff.objects.all()), _list("identity_staff")),
    ]


def events_since(tenant_id: str, moment: datetime) -> int:
    """Return how many events of a tenant were recorded at or after `moment`: positions are dense, so two look-ups tell."""
    head = Head.objects.filter(pk=tenant_id, recorded_at__gte=moment).first()
    if head is None:
        return 0
    since = LogEntry.objects.filter(tenant_id=tenant_id, recorded_at__gte=moment).order_by("recorded_at", "position")
    first = since.values_list("position", flat=True).first()
    return 0 if first is None else head.position - first + 1


def latest_events(tenant_id: str) -> QuerySet[LogEntry]:
    """Return the newest entries of a tenant's log."""
    return (
        LogEntry.objects.filter(tenant_id=tenant_id)
        .select_related("event")
        .defer("event__body")
        .order_by("-tenant_id", "-position")[:_SHOWN]
    )


def next_steps(tenant_id: str) -> list[tuple[str, str]]:
    """Return what a tenant has still to do before its first event arrives anywhere, as sentences with their addresses."""
    steps = []
    if not Connection.objects.of(tenant_id).exists():
        steps.append(("Add a connection: users belong to one.", reverse("admin:identity_connection_add")))
    elif not User.objects.of(tenant_id).exists():
        steps.append(("Add the first user and watch its event arrive in the log.", reverse("admin:identity_user_add")))
    if not EventStream.objects.of(tenant_id).exists():
        steps.append(("No event stream yet: events reach subscribers of /events, but no other system.", _list("events_eventstream")))
    return steps


def _attention(label: str, rows: QuerySet[Any], url: str) -> Figure:
    text = _count(rows)
    return Figure(label, text, url, "events a destination did not take", "bad" if text != "0" else "good")


def _count(rows: QuerySet[Any]) -> str:
    found = bounded_count(rows, COUNT_LIMIT)
    return f"{COUNT_LIMIT:,}+" if found > COUNT_LIMIT else f"{found:,}"


def _list(name: str, query: str = "") -> str:
    return reverse(f"admin:{name}_changelist") + (f"?{query}" if query else "")


def _midnight() -> datetime:
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
