"""The charts of the start page, each with a summary sentence and links to the counted rows."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib.admin.utils import quote
from django.urls import reverse

from config.console.dashboard.readings import MOST_WAITING, NEWEST, Hours, StreamState
from config.console.dashboard.state import State
from config.console.dashboard.viewer import Viewer, list_of
from foundation.admin.charts import Bar, Chart, count_axis, lying, upright
from foundation.admin.list_cells import clock_of
from foundation.admin.panels import Cell, Panel
from provisioning.admin.outcomes.flow_charts import percent, seconds, success_chart, time_chart
from provisioning.engine.stream_flow import HOUR, Flow
from provisioning.models import Delivery

_STREAMS_SHOWN = 6
_TONES = {"delivered": "good", "skipped": "quiet", "superseded": "quiet", "todo": "warn", "dead": "bad"}


def charts(viewer: Viewer, state: State) -> list[Chart]:
    """Return the charts of those parts of the state that were read."""
    return [*_lag(viewer, state), *_kinds(state), *_success(state), *_outcomes(state), *_events(viewer, state), *_sign_ins(state)]


def flow_panel(viewer: Viewer, state: State) -> Panel | None:
    """Return the event streams with their state, success rate, delivery times and lag.

    Streams for which staff must do something come first. None without streams.
    """
    if state.outcomes is None or not state.streams:
        return None
    rows = [_flow_row(viewer, stream, state.outcomes.by_stream.get(stream.stream_id, Flow())) for stream in state.streams[:_STREAMS_SHOWN]]
    columns = ("Event stream", "State", "Success rate", "Half are delivered within", "95 % are delivered within", "Lag")
    url = list_of("events_eventstream")
    return Panel("Event streams, last 24 hours", columns, rows, more_url=url, more_text="All event streams")


def _flow_row(viewer: Viewer, stream: StreamState, flow: Flow) -> list[Cell]:
    place = reverse("admin:events_eventstream_change", args=(quote(stream.stream_id),))
    name = f"{stream.name}{'' if viewer.tenant_id else f' of {stream.tenant_id}'}"
    state = "Held" if stream.held_since else stream.status.capitalize()
    ended = [percent(flow.success), seconds(flow.median), seconds(flow.most)] if flow.number else ["no deliveries", "none", "none"]
    # Events that are recorded while a stream is disabled are never delivered to it, so these events do not count as its lag.
    lag = stream.shown_lag if stream.is_enabled else "none"
    return [Cell(name, place), *(Cell(text) for text in (state, *ended, lag))]


def _success(state: State) -> Iterator[Chart]:
    if state.outcomes is not None:
        note = f"Only the newest {NEWEST:,} deliveries are read." if state.outcomes.is_cut else ""
        for chart in (success_chart, time_chart):
            yield chart(state.outcomes.by_hour, state.starts, url=list_of("provisioning_delivery"), note=note)


def _events(viewer: Viewer, state: State) -> Iterator[Chart]:
    if state.events is not None:
        about = "" if viewer.tenant_id else "About "
        yield _by_hour(
            state.events,
            key="events",
            title="Events per hour",
            what=f"{about}{state.events.total:,} events in the last 24 hours",
            model="events_logentry",
            query={},
            unit="events",
            empty="No events in the last 24 hours. If you change a user, the event appears here within a second.",
        )


def _sign_ins(state: State) -> Iterator[Chart]:
    if state.failed_sign_ins is not None:
        yield _by_hour(
            state.failed_sign_ins,
            key="sign-ins",
            title="Failed logins per hour",
            what=f"{state.failed_sign_ins.total:,} failed logins in the last 24 hours",
            model="authapi_signin",
            query={"outcome": "bad"},
            unit="failed logins",
            empty="No failed logins in the last 24 hours.",
            tone="bad",
        )


def _by_hour(
    hours: Hours, *, key: str, title: str, what: str, model: str, query: dict[str, str], unit: str, empty: str, tone: str = ""
) -> Chart:
    """Return a chart with one bar for each hour of the last day. Each bar links to the rows of that hour."""

    def label(number: int) -> str:
        return f"{hours.starts[number]:%Y-%m-%d %H:%M}"

    def url(number: int) -> str:
        start = hours.starts[number]
        return list_of(model, **query, since=f"{start:%Y-%m-%dT%H:%M:%S}", until=f"{start + HOUR:%Y-%m-%dT%H:%M:%S}")

    bars = upright(hours.counts, label, url)
    busiest = max(range(len(bars)), key=lambda number: bars[number].count)
    summary = f"{what}. The busiest hour, from {hours.starts[busiest]:%H:%M} UTC, has {bars[busiest].count:,}."
    note = f"Only the newest {NEWEST:,} {unit} are counted." if hours.is_cut else ""
    total, end = f"{hours.total:,}{'+' if hours.is_cut else ''}", count_axis(hours.counts)
    axes = {"first": clock_of(hours.starts[0]), "middle": clock_of(hours.starts[len(bars) // 2]), "last": "now"}
    axes |= {"unit": unit, "top": f"{end:,}", "half": f"{end // 2:,}"}
    return Chart(key, title, list_of(model, **query), total, summary, bars, is_upright=True, empty=empty, tone=tone, note=note, **axes)


def _outcomes(state: State) -> Iterator[Chart]:
    if state.outcomes is None:
        return
    by_state, names = state.outcomes.by_state, dict(Delivery.State.choices)
    rows = [
        (str(names[name]), by_state.get(name, 0), list_of("provisioning_delivery", state__exact=name), tone)
        for name, tone in _TONES.items()
    ]
    total = sum(by_state.values())
    said = ", ".join(f"{count:,} {label.lower()}" for label, count, _url, _tone in rows if count)
    yield _lying(
        lying(rows),
        key="deliveries",
        title="Deliveries by state",
        url=list_of("provisioning_delivery"),
        total=f"{total:,}",
        summary=f"Of {total:,} deliveries in the last 24 hours: {said}.",
        empty="No deliveries in the last 24 hours. Each event that an event stream selects becomes a delivery.",
        note=f"Only the newest {NEWEST:,} deliveries are counted." if state.outcomes.is_cut else "",
    )


def _kinds(state: State) -> Iterator[Chart]:
    if state.kinds is None:
        return
    rows = [
        (kind.text, kind.open, list_of("provisioning_deadletter", q=kind.fingerprint, stream_id=kind.stream_id), "bad")
        for kind in state.kinds
        if kind.open
    ]
    total = sum(count for _text, count, _url, _tone in rows)
    yield _lying(
        lying(rows),
        key="dead-letters",
        title="Open dead letters by kind",
        url=reverse("admin:provisioning_deadletter_kinds"),
        total=f"{total:,}",
        summary=f"{total:,} open dead letter{'' if total == 1 else 's'} with the most frequent kinds of failure.",
        empty="No open dead letters. Destinations accepted all events.",
        note=f"Only the newest {NEWEST:,} dead letters are counted." if total >= NEWEST else "",
    )


def _lag(viewer: Viewer, state: State) -> Iterator[Chart]:
    if not viewer.may_list("events_eventstream"):
        return
    enabled = sorted((stream for stream in state.streams if stream.is_enabled), key=lambda stream: -stream.lag)[:_STREAMS_SHOWN]
    rows = [
        (
            f"{stream.name}{'' if viewer.tenant_id else f' of {stream.tenant_id}'}",
            stream.lag,
            reverse("admin:events_eventstream_change", args=(quote(stream.stream_id),)),
            "warn" if stream.held_since else "",
        )
        for stream in enabled
    ]
    behind = sum(1 for stream in enabled if stream.lag)
    yield _lying(
        lying(rows),
        key="lag",
        title="Lag by event stream",
        url=list_of("events_eventstream"),
        total=f"{max((stream.lag for stream in enabled), default=0):,}",
        summary=f"{behind} of the {len(enabled)} event streams shown have events that are not delivered yet.",
        empty="No event stream has a lag. All events are delivered." if enabled else
        "No event streams yet. Add one to deliver events to a SCIM server or a webhook.",
        note=f"At most {MOST_WAITING:,} waiting events of a stream are counted." if any(stream.is_cut for stream in enabled) else "",
    )  # fmt: skip


def _lying(bars: list[Bar], *, key: str, title: str, url: str, total: str, summary: str, empty: str, note: str = "") -> Chart:
    return Chart(key, title, url, total, summary, bars, is_upright=False, empty=empty, note=note)
