"""Every figure that a process counts about the stream, under the names an operator's monitoring knows.

No figure has a tenant, a client or an address as a label: each would be a series for ever, and tell one tenant about
another. `config.metrics` shows them; what only the database knows stands in `events.figures`.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

# When a series began tells nothing here, and over several processes it cannot be known.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types there

# A registry of our own: the library's default one adds figures of the interpreter that mean nothing over several processes.
REGISTRY = CollectorRegistry(auto_describe=True)

_LATENCIES = (0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.125, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 3600)
_DISTANCES = (0, 1, 10, 100, 1000, 10_000, 100_000)

CONNECTIONS = Gauge("sse_connections", "Open streams.", registry=REGISTRY, multiprocess_mode="liveall")
CONNECTS = Counter("sse_connects", "Answers to requests for a stream, by status and error code.", ["status", "result"], registry=REGISTRY)
CLOSES = Counter("sse_closes", "Streams that have ended, by what ended them.", ["reason"], registry=REGISTRY)
EVENTS = Counter("sse_events", "Events handed to the connections of streams, the same event once for each.", registry=REGISTRY)
BYTES = Counter("sse_bytes", "Bytes handed to the connections of streams.", registry=REGISTRY)
REPLAY_EVENTS = Counter("sse_replay_events", "Those of `sse_events` that came from pages because the stream was behind.", registry=REGISTRY)
HEARTBEATS = Counter("sse_heartbeats", "Heartbeats written.", registry=REGISTRY)
LAG_EVENTS = Histogram(
    "sse_lag_events", "Events that a stream was not written yet, sampled when its timer looks at it.", buckets=_DISTANCES, registry=REGISTRY
)
LAG_SECONDS = Histogram("sse_lag_seconds", "Age of the oldest of these events, 0 without one.", buckets=(0, *_LATENCIES), registry=REGISTRY)
COMMIT_TO_WRITE = Histogram(
    "sse_commit_to_write_seconds",
    "From the numbering of an event to the end of its write, sampled, and for canaries from the request on.",
    ["kind"],
    buckets=_LATENCIES,
    registry=REGISTRY,
)
WRITE_BLOCKED = Histogram(
    "sse_write_blocked_seconds", "Writes that had to wait for their reader for 10 ms or longer.", buckets=_LATENCIES, registry=REGISTRY
)
BUFFER_BYTES = Gauge("sse_buffer_bytes", "Bytes of frames held for all streams.", registry=REGISTRY, multiprocess_mode="livesum")
PAGE_READS = Counter("sse_page_reads", "Pages of the log read for streams that were behind.", registry=REGISTRY)
PAGE_CACHE_HITS = Counter("sse_page_cache_hits", "Pages that somebody else had read already or was reading.", registry=REGISTRY)
HINTS_MISSED = Counter("hint_missed", "Logs that had grown and that only the poll told of.", registry=REGISTRY)
LEASES_RECLAIMED = Counter("lease_reclaimed", "Connection slots taken back from processes that died.", registry=REGISTRY)
LOOP_LAG = Histogram(
    "event_loop_lag_seconds",
    "How late the event loop came to a task that was due, looked at once a second.",
    buckets=_LATENCIES,
    registry=REGISTRY,
)
