"""Invariants of deliveries after all work has ended: no event is lost (I9), the order is kept (I10), and attempts are consistent."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from django.db import connection

from events.models import EventStream
from provisioning.models import Attempt, DeadLetter, Delivery, Lane
from tests.faults.worker import recorded

SETTLED = {"delivered", "skipped", "superseded", "dead"}
SETTLING = {"delivered", "skipped"}


def is_settled(stream: EventStream) -> bool:
    """Report whether the stream has read its whole log and has no waiting deliveries."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT s.position = h.position FROM events_eventstream s JOIN events_head h ON h.tenant_id = s.tenant_id WHERE s.id = %s",
            [stream.pk],
        )
        (has_read_all,) = cursor.fetchone()
    return bool(has_read_all) and not Lane.objects.filter(stream_id=stream.pk).exists()


def assert_nothing_lost(stream: EventStream, directory: Path, *, after: int = 0) -> None:
    """Assert I9: each event after this position has one delivery.

    The destination accepted the event, or the delivery is superseded or a dead letter. In the last two cases, a reason is stored.
    """
    deliveries = list(Delivery.objects.filter(stream_id=stream.pk).order_by("position"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM events_logentry WHERE tenant_id = %s AND position > %s", [stream.tenant_id, after])
        assert len(deliveries) == cursor.fetchone()[0]
    taken = {line["event"] for line in recorded(directory, step="end")}
    letters = Counter(DeadLetter.objects.filter(stream_id=stream.pk).values_list("delivery_id", flat=True))
    assert set(letters.values()) <= {1}
    for delivery in deliveries:
        assert delivery.state in SETTLED, (delivery.event_id, delivery.state)
        assert delivery.event_id in taken or delivery.state in {"dead", "superseded"}, delivery.event_id
        assert delivery.state != "superseded" or delivery.reason
        assert delivery.state != "dead" or letters[delivery.pk] == 1
    undelivered = DeadLetter.objects.filter(stream_id=stream.pk, delivery__state="dead")
    assert not undelivered.filter(body=None).exists()
    assert not undelivered.filter(reason="").exists()


def assert_in_order(stream: EventStream, directory: Path) -> None:
    """Assert I10: the attempts for each document begin in the order of the log. Redelivered events are not checked."""
    positions = dict(Delivery.objects.filter(stream_id=stream.pk).values_list("event_id", "position"))
    redelivered = set(Delivery.objects.filter(stream_id=stream.pk, redeliveries__gt=0).values_list("event_id", flat=True))
    begun: dict[str, int] = {}
    for line in recorded(directory):
        if line["event"] in redelivered:
            continue
        assert positions[line["event"]] >= begun.get(line["key"], 0), line
        begun[line["key"]] = positions[line["event"]]


def assert_doubled_at_most(directory: Path, crashes: int) -> None:
    """Assert I10: the number of repeated acceptances of events is at most the number of crashes."""
    counts = Counter(line["event"] for line in recorded(directory, step="end"))
    assert sum(count - 1 for count in counts.values()) <= crashes, counts.most_common(3)


def assert_right_documents(stream: EventStream, directory: Path) -> None:
    """Assert that the destination received each event as a change of the document of the event."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT event_id, root FROM events_event WHERE tenant_id = %s", [stream.tenant_id])
        roots = dict(cursor.fetchall())
    for line in recorded(directory):
        assert line["key"] == roots[line["event"]], line


def assert_books_agree(stream: EventStream) -> None:
    """Assert that attempts have the numbers from 1 to `Delivery.attempts`, and that only the last attempt settles the delivery.

    An attempt after the attempt that settled the delivery means that an outcome was stored without a valid lease.
    """
    attempts: dict[int, list[tuple[int, str]]] = {}
    rows = Attempt.objects.filter(delivery__stream_id=stream.pk).order_by("number")
    for delivery_id, number, outcome in rows.values_list("delivery_id", "number", "outcome"):
        attempts.setdefault(delivery_id, []).append((number, outcome))
    for delivery in Delivery.objects.filter(stream_id=stream.pk):
        outcomes = attempts.get(delivery.pk, [])
        assert [number for number, _ in outcomes] == list(range(1, delivery.attempts + 1)), delivery.event_id
        assert not {outcome for _, outcome in outcomes[:-1]} & SETTLING, (delivery.event_id, outcomes)


def assert_sound(stream: EventStream, directory: Path, *, crashes: int, after: int = 0) -> None:
    """Assert every invariant of this module for a stream that began after this position."""
    assert is_settled(stream)
    assert_nothing_lost(stream, directory, after=after)
    assert_in_order(stream, directory)
    assert_doubled_at_most(directory, crashes)
    assert_right_documents(stream, directory)
    assert_books_agree(stream)
