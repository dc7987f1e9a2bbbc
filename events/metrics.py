"""The metrics of event streams that each process counts. Their names follow the conventions of Prometheus.

No metric has a label for a tenant, a client or an IP address. Each value of such a label would add a series that never ends. And the
metrics would disclose the activity of a tenant to others. `config.metrics` exposes these metrics; `events.figures` has the metrics whose
values are in the database.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

# The `_created` series contain no useful information, and their values are undefined if several processes are counted together.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types there

# Use a separate registry: the default registry adds metrics of the interpreter, which have no meaning for several processes together.
REGISTRY = CollectorRegistry(auto_describe=True)

_LATENCIES = (0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.125, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 3600)
_DISTANCES = (0, 1, 10, 100, 1000, 10_000, 100_000)

CONNECTIONS = Gauge("sse_connections", "Open streams.", registry=REGISTRY, multiprocess_mode="liveall")
CONNECTS = Counter("sse_connects", "Responses to requests for a stream, by status and error code.", ["status", "result"], registry=REGISTRY)
CLOSES = Counter("sse_closes", "Streams that have ended, by cause.", ["reason"], registry=REGISTRY)
EVENTS = Counter("sse_events", "Events written to connections of streams, counted once per connection.", registry=REGISTRY)
BYTES = Counter("sse_bytes", "Bytes written to connections of streams.", registry=REGISTRY)
REPLAY_EVENTS = Counter(
    "sse_replay_events",
    "Events that a stream read from pages of the log because it was behind, and then wrote; included in `sse_events`.",
    registry=REGISTRY,
)
HEARTBEATS = Counter("sse_heartbeats", "Heartbeats written.", registry=REGISTRY)
LAG_EVENTS = Histogram(
    "sse_lag_events",
    "Number of events that are not yet written to a stream, sampled by the timer of the stream.",
    buckets=_DISTANCES,
    registry=REGISTRY,
)
LAG_SECONDS = Histogram(
    "sse_lag_seconds",
    "Age of the oldest event that is not yet written to a stream; 0 if every event is written.",
    buckets=(0, *_LATENCIES),
    registry=REGISTRY,
)
COMMIT_TO_WRITE = Histogram(
    "sse_commit_to_write_seconds",
    "Seconds from the numbering of an event to the end of its write, sampled; for canaries, seconds from the request.",
    ["kind"],
    buckets=_LATENCIES,
    registry=REGISTRY,
)
WRITE_BLOCKED = Histogram(
    "sse_write_blocked_seconds",
    "Seconds that a write waited for a slow client; waits below 10 ms are not counted.",
    buckets=_LATENCIES,
    registry=REGISTRY,
)
BUFFER_BYTES = Gauge("sse_buffer_bytes", "Bytes of the frames in memory, for all streams.", registry=REGISTRY, multiprocess_mode="livesum")
PAGE_READS = Counter("sse_page_reads", "Pages of the log that were read for streams that were behind.", registry=REGISTRY)
PAGE_CACHE_HITS = Counter("sse_page_cache_hits", "Requests for a log page that another stream had read or was reading.", registry=REGISTRY)
HINTS_MISSED = Counter("hint_missed", "Number of times that polling found new log entries before a hint arrived.", registry=REGISTRY)
LEASES_RECLAIMED = Counter("lease_reclaimed", "Connection slots that were freed because their process had died.", registry=REGISTRY)
LOOP_LAG = Histogram(
    "event_loop_lag_seconds",
    "How late the event loop ran a due task, sampled once a second.",
    buckets=_LATENCIES,
    registry=REGISTRY,
)
