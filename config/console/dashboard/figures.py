"""The figures of the start page: each is one number with a link to the list that it counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.contrib.admin.utils import quote
from django.urls import reverse

from config.console.dashboard.readings import age_of, in_words
from config.console.dashboard.state import State, counted
from config.console.dashboard.viewer import Viewer, list_of

# A delivery that is due for longer means that workers are missing; short delays are normal at peak times.
DUE_TOO_LONG_SECONDS = 60
_COUNTED = {
    "identity_tenant": ("Tenants", ""),
    "identity_user": ("Users", ""),
    "events_outbox": ("Without a position yet", "events without a number"),
    "identity_staff": ("Staff accounts", ""),
}


@dataclass(frozen=True)
class Figure:
    """One number with the list that it counts. `tone` sets its color."""

    label: str
    value: str
    url: str
    note: str = ""
    tone: str = ""


def figures(viewer: Viewer, state: State) -> list[Figure]:
    """Return the figures of the state, in the order in which events travel."""
    counts = [
        Figure(label, counted(state.counts[model]), list_of(model), note)
        for model, (label, note) in _COUNTED.items()
        if model in state.counts
    ]
    return [*counts, *_of_streams(viewer, state), *_of_deliveries(viewer, state), *_of_sign_ins(state)]


def _of_streams(viewer: Viewer, state: State) -> Iterator[Figure]:
    if state.events is not None:
        about = "" if viewer.tenant_id else "about, in the last 24 hours"
        yield Figure("Events", f"{state.events.total:,}", list_of("events_logentry"), about or "in the last 24 hours")
        streams = "unknown" if state.open_streams is None else f"{state.open_streams:,}"
        note = "Redis does not answer" if state.open_streams is None else "clients that are reading /events"
        yield Figure("Open streams", streams, reverse("admin:events_connections"), note)
    if viewer.may_list("events_eventstream"):
        behind = max((stream for stream in state.streams if stream.is_enabled), key=lambda stream: stream.behind, default=None)
        if behind is None:
            yield Figure("Lag", "none", list_of("events_eventstream"), "no event stream is enabled")
        else:
            place = reverse("admin:events_eventstream_change", args=(quote(behind.stream_id),))
            yield Figure("Lag", f"{behind.behind:,}", place, f"events that {behind.name} has not dispatched")
        missed = max(state.streams, key=lambda stream: stream.not_found, default=None)
        if missed is not None:
            place = reverse("admin:events_eventstream_change", args=(quote(missed.stream_id),))
            tone = "bad" if missed.not_found >= settings.NOT_FOUND_ALERT_USERS else ""
            note = f"by the server of {missed.name}, in the last 24 hours" if missed.not_found else "by the servers, in the last 24 hours"
            yield Figure("Users not found", f"{missed.not_found:,}", place, note, tone)


def _of_deliveries(viewer: Viewer, state: State) -> Iterator[Figure]:
    if state.outcomes is not None:
        total = sum(state.outcomes.by_state.values())
        least = "+" if state.outcomes.is_cut else ""
        yield Figure("Deliveries", f"{total:,}{least}", list_of("provisioning_delivery"), "in the last 24 hours")
        waits = None if state.due is None else age_of(state.due.since)
        is_late = waits is not None and waits.total_seconds() > DUE_TOO_LONG_SECONDS
        note = "no delivery is due" if state.due is None else f"of {state.due.stream_name}"
        url = list_of("provisioning_lane") if viewer.may_list("provisioning_lane") else list_of("provisioning_delivery")
        yield Figure("Oldest due delivery", "none" if waits is None else in_words(waits), url, note, "bad" if is_late else "")
    if "provisioning_deadletter" in state.counts:
        letters = state.counts["provisioning_deadletter"]
        url = list_of("provisioning_deadletter", state__exact="open")
        yield Figure("Open dead letters", counted(letters), url, "events that a destination did not accept", "bad" if letters else "good")


def _of_sign_ins(state: State) -> Iterator[Figure]:
    if state.failed_sign_ins is not None:
        least = "+" if state.failed_sign_ins.is_cut else ""
        url = list_of("authapi_signin", outcome="bad", since=f"{state.starts[0]:%Y-%m-%dT%H:%M:%S}")
        yield Figure("Failed logins", f"{state.failed_sign_ins.total:,}{least}", url, "in the last 24 hours")
