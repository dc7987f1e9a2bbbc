"""The page that lists every metric of `/metrics`. The list comes from the registry of the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import Metric

import config.server.peer_share
import config.server.request_counts  # noqa: F401  (both register their figures)
from events import figures
from events.metrics import REGISTRY

_HEAD = """# Metrics

The metrics of `/metrics`, on the platform's host ([decision 0047](../adr/0047-figures-for-monitoring.md)). `METRICS_TOKEN` and
`METRICS_NETWORKS` control access ([settings](settings.md#metrics)). The label `stream` is the id of an event stream. Only the
`METRICS_STREAMS` oldest enabled streams have metrics with this label; the sums without this label also include the other enabled streams.

| Name | Kind | Labels | Meaning |
|---|---|---|---|
"""
_FROM_THE_DATABASE = "Metrics that every process reads from the database at each scrape, with equal values in all processes."


def metrics_page() -> str:
    """Return the page."""
    counted = "".join(_row(metric, " ".join(labels)) for metric, labels in _counted())
    read = "".join(_row(metric, " ".join(_labels(metric))) for app in figures.registered() for metric in app.describe())
    return f"{_HEAD}{counted}\n## {_FROM_THE_DATABASE[:-1]}\n\n| Name | Kind | Labels | Meaning |\n|---|---|---|---|\n{read}"


def _counted() -> Iterator[tuple[Metric, tuple[str, ...]]]:
    # The registry has the metrics; their labels are in a private attribute of the library.
    for metric in REGISTRY._collector_to_names:
        declared: Any = metric
        [described] = declared.describe()
        yield described, declared._labelnames


def _labels(metric: Metric) -> tuple[str, ...]:
    # A metric family keeps its labels in a private attribute, too.
    found: tuple[str, ...] = getattr(metric, "_labelnames", ())
    return found


def _row(metric: Metric, labels: str) -> str:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    return f"| `{name}` | {metric.type} | {f'`{labels}`' if labels else ''} | {metric.documentation} |\n"
