"""Metrics whose values are read from the database at each scrape, with one statement per app and a timeout.

Every process returns the same values. The values do not start at zero after a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import Error as DatabaseError
from django.db import connection, transaction
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

logger = logging.getLogger(__name__)

_STATEMENT_TIMEOUT_MS = 2000
# A query counts at most this many rows. Above this number, the exact number does not matter to an operator.
MOST_COUNTED = 100_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric: its name, its meaning, and the scalar subquery that returns its value; NULL counts as 0."""

    name: str
    meaning: str
    query: str
    is_counter: bool = False

    def metric(self) -> Metric:
        """Return the metric without a value."""
        kind = CounterMetricFamily if self.is_counter else GaugeMetricFamily
        return kind(self.name, self.meaning)


class DatabaseFigures(Collector):
    """The metrics of one app. If the database does not answer in time, the metrics are absent, and a separate metric reports this."""

    def __init__(self, app: str, figures: Sequence[Figure]) -> None:
        self.app = app
        self.figures = figures

    def describe(self) -> Iterable[Metric]:
        """Return the metrics that `collect` can yield, without a query."""
        return [*(figure.metric() for figure in self.figures), self._failed()]

    def collect(self) -> Iterable[Metric]:
        """Yield the present value of every metric."""
        failed = self._failed()
        try:
            values = self._values()
        except (DatabaseError, OSError) as error:
            self._warn(error)
            failed.add_metric([], 1)
            yield failed
            return
        for figure, value in zip(self.figures, values, strict=True):
            metric = figure.metric()
            metric.add_metric([], float(value or 0))  # type: ignore[attr-defined]  # both families have it
            yield metric
        failed.add_metric([], 0)
        yield failed

    def _failed(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"{self.app}_figures_failed", f"1 if the database did not return the figures of {self.app} in time.")

    def _values(self) -> Sequence[float | None]:
        columns = ", ".join(f"({figure.query})" for figure in self.figures)
        [row] = read_in_time(f"SELECT {columns}")
        return row

    def _warn(self, error: Exception) -> None:
        logger.warning("the figures of %s were not read: %s", self.app, type(error).__name__)


def read_in_time(query: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    """Return the rows of a query with the statement timeout of a scrape."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {_STATEMENT_TIMEOUT_MS}")
        cursor.execute(query, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def counted(rows: str) -> str:
    """Return a query that counts rows, but not beyond `MOST_COUNTED`; `rows` is the text after SELECT."""
    return f"SELECT count(*) FROM (SELECT {rows} LIMIT {MOST_COUNTED}) counted"


_registered: dict[str, DatabaseFigures] = {}


def register(figures: DatabaseFigures) -> None:
    """Register the metrics of an app. The app calls this function in `AppConfig.ready`."""
    _registered[figures.app] = figures


def registered() -> list[DatabaseFigures]:
    """Return the metrics of every app, sorted by the app's name."""
    return [_registered[app] for app in sorted(_registered)]


EVENTS = DatabaseFigures(
    "events",
    [
        Figure("outbox_unsequenced", f"Events that have no position yet, counted up to {MOST_COUNTED}.", counted("1 FROM events_outbox")),
        Figure(
            "outbox_watermark_age_seconds",
            "Age of the oldest event that has no position yet.",
            # The query orders by the primary key, so it reads only the first entry of the index.
            "SELECT extract(epoch FROM clock_timestamp() - e.time) FROM events_outbox o JOIN events_event e ON e.id = o.event"
            " ORDER BY o.event LIMIT 1",
        ),
        Figure(
            "outbox_retention_floor_age_seconds",
            "Age of the newest pruned event of all tenants.",
            "SELECT min(extract(epoch FROM clock_timestamp() - floor_recorded_at)) FROM events_head",
        ),
        Figure(
            "log_oldest_event_age_seconds",
            "Age of the oldest kept event of all tenants.",
            # Reads one index entry for each tenant.
            "SELECT max(extract(epoch FROM clock_timestamp() - l.recorded_at)) FROM events_head h CROSS JOIN LATERAL ("
            "SELECT recorded_at FROM events_logentry WHERE tenant_id = h.tenant_id ORDER BY recorded_at, position LIMIT 1) l",
        ),
        Figure(
            "database_oldest_snapshot_age_seconds",
            "Age of the oldest open transaction that holds a snapshot: PostgreSQL cannot vacuum rows that this transaction might see.",
            "SELECT max(extract(epoch FROM clock_timestamp() - xact_start)) FROM pg_stat_activity"
            " WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()",
        ),
        Figure(
            "tripwire_marks_waiting",
            f"Changes that no event describes yet, counted up to {MOST_COUNTED}.",
            counted("1 FROM events_mark"),
        ),
        Figure(
            "tripwire_swept",
            "Events that the sweep recorded because Django sent no signal for the change.",
            "SELECT count FROM events_tally WHERE name = 'swept'",
            is_counter=True,
        ),
    ],
)
