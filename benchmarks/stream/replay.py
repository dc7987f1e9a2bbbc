"""Compares one stream from a cursor over a long history with a bare psycopg fetch of the same rows."""

from __future__ import annotations

import statistics
import time

from benchmarks.stream.programs import Programs
from benchmarks.stream.scenarios import Figures, NotDelivered, Sizes
from benchmarks.stream.subjects import Subject
from benchmarks.stream.usage import Meter, load_average
from benchmarks.stream.world import Member, World
from events.log.numbering import open_connection

_ROWS = """
SELECT l.position, l.recorded_at, e.type, e.body FROM events_logentry l JOIN events_event e ON e.id = l.event_id
WHERE l.tenant_id = %s ORDER BY l.position
"""
_REPLAY_SECONDS = 120.0


def replay(subject: Subject, programs: Programs, world: World, member: Member, sizes: Sizes) -> Figures:
    """Read the whole log of the tenant with one stream, then with one statement; return events per second of both."""
    rounds = [_round(subject, programs, world, member, sizes.history) for _ in range(sizes.rounds)]
    middle = {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}
    return {**middle, "events": sizes.history, "rounds": rounds}


def _round(subject: Subject, programs: Programs, world: World, member: Member, events: int) -> Figures:
    bare = events / _bare_seconds(member, events)
    request = member.subscription(member.token(), f"?from={world.start_of(member)}")
    with programs.reader(subject.address) as reader:
        meter = Meter(subject.pids())
        opened = reader.open([request])
        told = reader.wait(events, seconds=_REPLAY_SECONDS)
        processor = meter.taken()[0]
    if told.frames != events:
        raise NotDelivered(f"{told.frames} of {events} events were replayed")
    ours = events / (told.last - opened.started)
    return {
        "events_per_second": ours,
        "bare_events_per_second": bare,
        "ratio_to_bare": ours / bare,
        "us_per_event": processor / events * 1e6,
        "load_average": load_average(),
    }


def _bare_seconds(member: Member, events: int) -> float:
    with open_connection() as database, database.cursor(binary=True) as cursor:
        started = time.monotonic()
        rows = cursor.execute(_ROWS, [member.tenant_id]).fetchall()
        taken = time.monotonic() - started
    if len(rows) != events:
        raise NotDelivered(f"{len(rows)} of {events} rows were fetched")
    return taken
