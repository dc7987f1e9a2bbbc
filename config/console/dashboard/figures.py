"""The figures of the start page: each is one number with a link to the list that it counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.conf import settings
from django.contrib.admin.utils import quote
from django.urls import reverse

from config.console.dashboard.readings import StreamState, age_of, in_words
from config.console.dashboard.state import State, counted
from config.console.dashboard.viewer import Viewer, list_of

# If a delivery has been due for longer than this, workers are missing. Short delays are normal at peak times.
DUE_TOO_LONG_SECONDS = 60
_COUNTED = {
    "identity_user": ("Users", ""),
    "identity_tenant": ("Tenants", ""),
    "identity_staff": ("Staff accounts", ""),
    "events_outbox": ("Events without a position", "recorded events that are not in the log yet"),
}


@dataclass(frozen=True)
class Figure:
    """One number with the list that it counts. `tone` sets its color. A quiet figure needs no action and is smaller."""

    label: str
    value: str
    url: str
    note: str = ""
    tone: str = ""
    is_quiet: bool = False


def figures(viewer: Viewer, state: State) -> list[Figure]:
    """Return the figures of the state: first the figures that may need an action, then the quiet figures."""
    about_streams = [*_of_letters(state), *_of_streams(viewer, state)]
    return [*about_streams, *(replace(figure, is_quiet=True) for figure in (*_of_volume(viewer, state), *_of_rows(state)))]


def _of_letters(state: State) -> Iterator[Figure]:
    if "provisioning_deadletter" in state.counts:
        letters = state.counts["provisioning_deadletter"]
        url = list_of("provisioning_deadletter", state__exact="open")
        yield Figure(
            "Open dead letters",
            counted(letters),
            url,
            "events that a destination did not accept after all attempts",
            "bad" if letters else "good",
        )


def _of_streams(viewer: Viewer, state: State) -> Iterator[Figure]:
    may_see = viewer.may_list("events_eventstream")
    enabled = [stream for stream in state.streams if stream.is_enabled]
    if may_see:
        yield _lag(enabled)
    if state.outcomes is not None:
        yield _oldest(viewer, state)
    if may_see:
        waiting, is_cut = sum(stream.waiting for stream in enabled), any(stream.is_cut for stream in enabled)
        url = list_of("provisioning_delivery", state__exact="todo") if state.outcomes is not None else list_of("events_eventstream")
        yield Figure("Waiting deliveries", f"{waiting:,}{'+' if is_cut else ''}", url, "events that are not delivered yet, for all streams")
        yield _held([stream for stream in state.streams if stream.held_since])
        yield from _not_found(state.streams)


def _lag(enabled: list[StreamState]) -> Figure:
    """Return the largest lag of a stream: the number of events that its destination does not have, dispatched or not."""
    behind = max(enabled, key=lambda stream: stream.lag, default=None)
    if behind is None:
        return Figure("Largest lag", "none", list_of("events_eventstream"), "no event stream is enabled")
    if not behind.lag:
        return Figure("Largest lag", "0", _page(behind), "every event is delivered")
    is_stopped = behind.held_since is not None
    note = f"events that {behind.name} has not delivered{', because this stream is held' if is_stopped else ''}"
    return Figure("Largest lag", behind.shown_lag, _page(behind), note, "bad" if is_stopped else "")


def _oldest(viewer: Viewer, state: State) -> Figure:
    due = min((due for due in (state.due, state.held_due) if due is not None), key=lambda due: due.since, default=None)
    url = list_of("provisioning_lane") if viewer.may_list("provisioning_lane") else list_of("provisioning_delivery")
    if due is None:
        return Figure("Oldest due delivery", "none", url, "no delivery is due")
    waits = age_of(due.since)
    is_late = due.is_held or waits.total_seconds() > DUE_TOO_LONG_SECONDS
    note = f"of {due.stream_name}{', which is held' if due.is_held else ''}"
    return Figure("Oldest due delivery", in_words(waits), url, note, "bad" if is_late else "")


def _held(held: list[StreamState]) -> Figure:
    url = _page(held[0]) if len(held) == 1 else list_of("events_eventstream")
    note = f"deliveries of {held[0].name} are paused" if len(held) == 1 else "event streams whose deliveries are paused"
    return Figure("Held streams", f"{len(held):,}", url, note, "bad" if held else "")


def _not_found(streams: list[StreamState]) -> Iterator[Figure]:
    missed = max(streams, key=lambda stream: stream.not_found, default=None)
    if missed is not None:
        tone = "bad" if missed.not_found >= settings.NOT_FOUND_ALERT_USERS else ""
        note = f"by the server of {missed.name}, in the last 24 hours" if missed.not_found else "by the servers, in the last 24 hours"
        yield Figure("Users not found", f"{missed.not_found:,}", _page(missed), note, tone, is_quiet=not missed.not_found)


def _page(stream: StreamState) -> str:
    return reverse("admin:events_eventstream_change", args=(quote(stream.stream_id),))


def _of_volume(viewer: Viewer, state: State) -> Iterator[Figure]:
    if state.events is not None:
        about = "" if viewer.tenant_id else "in the last 24 hours, approximately"
        yield Figure("Events", f"{state.events.total:,}", list_of("events_logentry"), about or "in the last 24 hours")
    if state.outcomes is not None:
        total = sum(state.outcomes.by_state.values())
        least = "+" if state.outcomes.is_cut else ""
        yield Figure("Deliveries", f"{total:,}{least}", list_of("provisioning_delivery"), "in the last 24 hours")
    if state.events is not None:
        streams = "unknown" if state.open_streams is None else f"{state.open_streams:,}"
        note = "Redis does not answer" if state.open_streams is None else "connections of clients that read /events"
        yield Figure("Open streams", streams, reverse("admin:events_connections"), note)
    if state.failed_sign_ins is not None:
        least = "+" if state.failed_sign_ins.is_cut else ""
        url = list_of("authapi_signin", outcome="bad", since=f"{state.starts[0]:%Y-%m-%dT%H:%M:%S}")
        yield Figure("Failed logins", f"{state.failed_sign_ins.total:,}{least}", url, "in the last 24 hours")


def _of_rows(state: State) -> Iterator[Figure]:
    for model, (label, note) in _COUNTED.items():
        if model in state.counts:
            yield Figure(label, counted(state.counts[model]), list_of(model), note)
