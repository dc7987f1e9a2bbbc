"""Metrics with a label for the stream, for a bounded number of streams. One statement reads all these metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import orjson
from django.conf import settings
from django.db import Error as DatabaseError
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from events.figures import DatabaseFigures, read_in_time
from provisioning.engine.stream_tallies import BOUNDS, BUCKET_NAMES, SUM_NAME

# Reads one range of the index of tallies for each stream.
_SHOWN = """
SELECT shown.id, shown.behind, shown.is_held,
    (SELECT coalesce(json_object_agg(t.name, t.count), '{}')::text FROM provisioning_streamtally t WHERE t.stream_id = shown.id)
FROM (
    SELECT s.id, s.held_since IS NOT NULL AS is_held, greatest(coalesce(h.position, 0) - s.position, 0) AS behind
    FROM events_eventstream s LEFT JOIN events_head h ON h.tenant_id = s.tenant_id
    WHERE s.status = 'enabled' ORDER BY s.created_at, s.id LIMIT %s
) shown
"""
_LIMIT = [format(bound, "g") for bound in BOUNDS] + ["+Inf"]


class StreamFigures(DatabaseFigures):
    """The metrics of the oldest enabled streams, at most `METRICS_STREAMS`."""

    def __init__(self) -> None:
        super().__init__("provisioning_streams", [])

    def describe(self) -> Iterable[Metric]:
        """Return the metrics that `collect` can yield, without a query."""
        return [*_metrics(), self._failed()]

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of these streams."""
        failed = self._failed()
        try:
            rows = read_in_time(_SHOWN, [settings.METRICS_STREAMS])
        except (DatabaseError, OSError) as error:
            self._warn(error)
            failed.add_metric([], 1)
            yield failed
            return
        attempts, seconds, behind, held = _metrics()
        for stream, positions, is_held, tallies in rows:
            _add_tallies(attempts, seconds, stream, orjson.loads(tallies))
            behind.add_metric([stream], positions)
            held.add_metric([stream], int(is_held))
        failed.add_metric([], 0)
        yield from (attempts, seconds, behind, held, failed)


def _metrics() -> tuple[CounterMetricFamily, HistogramMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    return (
        CounterMetricFamily(
            "provisioning_stream_attempts",
            "Attempts of a stream by result: delivered, skipped, or the class of the failure.",
            labels=["stream", "result"],
        ),
        HistogramMetricFamily("provisioning_stream_attempt_seconds", "Durations of the attempts of a stream.", labels=["stream"]),
        GaugeMetricFamily("provisioning_stream_positions_behind", "Log positions that a stream has not dispatched yet.", labels=["stream"]),
        GaugeMetricFamily("provisioning_stream_held", "1 while a stream is held.", labels=["stream"]),
    )


def _add_tallies(attempts: CounterMetricFamily, seconds: HistogramMetricFamily, stream: str, tallies: Mapping[str, int]) -> None:
    counted = accumulate(tallies.get(name, 0) for name in BUCKET_NAMES)
    buckets: Sequence[Any] = list(zip(_LIMIT, counted, strict=True))
    seconds.add_metric([stream], buckets, tallies.get(SUM_NAME, 0) / 1000)
    for name in sorted(tallies.keys() - {*BUCKET_NAMES, SUM_NAME}):
        attempts.add_metric([stream, name], tallies[name])


STREAMS = StreamFigures()
