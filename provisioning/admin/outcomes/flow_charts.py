"""The charts of deliveries over time: their success rate and the time until they reach the destination."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from foundation.admin.charts import Chart, axis_end, measured
from foundation.admin.list_cells import clock_of
from provisioning.engine.stream_flow import Flow

_NO_DELIVERIES = "No deliveries have ended in the last 24 hours."
_TIME_NOTE = (
    "Each bar shows the time within which 95 % of the deliveries of its hour arrived, including further attempts and holds. The number "
    "above is the time of the slowest hour."
)


def success_chart(flows: Sequence[Flow], starts: Sequence[datetime], *, url: str, note: str = "") -> Chart:
    """Return the success rate for each hour: how many percent of the deliveries that ended were accepted by the destination."""
    rates = [flow.success for flow in flows]
    accepted, failed = sum(flow.accepted for flow in flows), sum(flow.failed for flow in flows)
    total = percent(Flow(accepted=accepted, failed=failed).success)
    return Chart(
        key="success",
        title="Success rate of deliveries",
        url=url,
        total=total,
        summary=f"Destinations accepted {total} of the deliveries that ended in the last 24 hours; {failed:,} became dead letters.",
        bars=measured(rates, 100, _label(starts), url, percent, is_share=True),
        is_upright=True,
        empty=_NO_DELIVERIES,
        tone="good",
        note=note,
        unit="% accepted",
        top="100",
        half="50",
        **_hours(starts),
    )


def time_chart(flows: Sequence[Flow], starts: Sequence[datetime], *, url: str, note: str = "") -> Chart:
    """Return the time within which 95 percent of the deliveries of each hour reached the destination."""
    times = [flow.most for flow in flows]
    longest = max((time for time in times if time is not None), default=0.0)
    end = axis_end(longest)
    scale, unit = (1.0, "seconds") if end < 600 else (60.0, "minutes") if end < 36_000 else (3600.0, "hours")
    end = axis_end(longest / scale)
    scaled = [None if time is None else time / scale for time in times]
    return Chart(
        key="time",
        title="Time to deliver",
        url=url,
        total=f"up to {seconds(longest)}",
        summary=f"Each bar shows the time within which 95 percent of the deliveries of its hour arrived, at most {seconds(longest)}.",
        bars=measured(scaled, end, _label(starts), url, lambda value: seconds(value * scale)),
        is_upright=True,
        empty=_NO_DELIVERIES,
        note=f"{_TIME_NOTE} {note}".strip(),
        unit=unit,
        column="95 % arrived within",
        top=f"{end:g}",
        half=f"{end / 2:g}",
        **_hours(starts),
    )


def percent(rate: float | None) -> str:
    """Return a percentage that is never rounded up to 100."""
    if rate is None:
        return "none"
    return "100 %" if rate == 100 else f"{min(rate, 99.9):.1f} %"


def seconds(duration: float | None) -> str:
    """Return a duration with its unit."""
    if duration is None:
        return "none"
    if duration < 1:
        return f"{duration * 1000:.0f} ms"
    if duration < 120:
        return f"{duration:.1f} s"
    return f"{duration / 60:.0f} min" if duration < 7200 else f"{duration / 3600:.1f} h"


def _label(starts: Sequence[datetime]) -> Callable[[int], str]:
    return lambda number: f"{starts[number]:%Y-%m-%d %H:%M}"


def _hours(starts: Sequence[datetime]) -> dict[str, str]:
    return {"first": clock_of(starts[0]), "middle": clock_of(starts[len(starts) // 2]), "last": "now"}
