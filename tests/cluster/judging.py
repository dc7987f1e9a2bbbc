"""A program that judges the deliveries of a stream: `python -m tests.cluster.judging <stream> <directory> [lossy]`.

Outcomes are committed asynchronously, so a promoted standby can lack the latest outcomes. The workers then repeat the deliveries of these
outcomes in order.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import django

django.setup()

from events.models import EventStream  # noqa: E402
from provisioning.models import DeadLetter, Delivery  # noqa: E402
from tests.faults.delivery_invariants import assert_books_agree, assert_nothing_lost, is_settled  # noqa: E402
from tests.faults.worker import recorded  # noqa: E402


def main(stream_id: str, directory: Path, *, is_lossy: bool) -> None:
    """Print `waiting`, or judge a settled stream and print `settled`. A broken invariant ends the program with an error.

    With `is_lossy`, the destination may have accepted events that the database lost afterwards.
    """
    stream = EventStream.all_tenants.get(pk=stream_id)
    if not is_settled(stream):
        print("waiting")  # noqa: T201  (the answer)
        return
    assert_nothing_lost(stream, directory)
    assert_nothing_overtaken(stream, directory, is_lossy=is_lossy)
    assert_books_agree(stream)
    assert not DeadLetter.objects.filter(stream_id=stream.pk).exists()
    print("settled")  # noqa: T201  (the answer)


def assert_nothing_overtaken(stream: EventStream, directory: Path, *, is_lossy: bool) -> None:
    """Check that a run for an event begins only after the destination accepted all earlier events of the same document."""
    positions = dict(Delivery.objects.filter(stream_id=stream.pk).values_list("event_id", "position"))
    waiting: dict[str, list[int]] = defaultdict(list)
    keys = {line["event"]: line["key"] for line in recorded(directory)}
    for event, position in sorted(positions.items(), key=lambda item: item[1]):
        if event in keys:
            waiting[keys[event]].append(position)
    for line in every_record(directory):
        if is_lossy and line["event"] not in positions:
            continue
        left, position = waiting[line["key"]], positions[line["event"]]
        assert not left or position <= left[0], line
        if line["step"] == "end" and left and position == left[0]:
            left.pop(0)
    assert not any(waiting.values())


def every_record(directory: Path) -> list[dict[str, str]]:
    """Return the recorded starts and ends of runs, in the order in which they happened."""
    return [json.loads(line) for line in (directory / "events").read_text().splitlines()]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), is_lossy="lossy" in sys.argv[3:])
