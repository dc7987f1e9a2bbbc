"""Texts for staff before and after a redelivery: what would be redelivered, and whether the events wait because of their stream."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages

from events.models import EventStream
from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import Caution
from provisioning.dead_letters.redelivery_outlook import Outlook
from provisioning.models import DeadLetter

_KINDS_SHOWN = 20


def obstacle_of(stream: EventStream | None) -> str:
    """Return the reason why the deliveries of a stream wait, as a part of a sentence; empty if they do not wait."""
    if stream is None or (stream.held_since is None and stream.status == EventStream.Status.ENABLED):
        return ""
    if stream.held_since is not None:
        return f"the stream is held: {stream.held_reason or 'no reason is stored.'}"
    return "the stream is disabled."


def queued(letter: DeadLetter) -> str:
    """Return the message after the redelivery of one dead letter."""
    obstacle = obstacle_of(EventStream.objects.of(letter.tenant_id).filter(pk=letter.stream_id).first())
    if obstacle:
        return Caution(f"Redelivery queued. It waits, because {obstacle}")
    return "Redelivery queued. The next attempt starts within seconds."


def all_queued(count: int, letters: Iterable[DeadLetter]) -> tuple[int, str]:
    """Return level and text of the message after the redelivery of several dead letters."""
    said, waits = f"{count:,} {'redelivery' if count == 1 else 'redeliveries'} queued.", waits_of(count, letters)
    return (messages.WARNING, f"{said} {waits}") if waits else (messages.SUCCESS, said)


def waits_of(count: int, letters: Iterable[DeadLetter]) -> str:
    """Return a sentence about redeliveries that wait because of their streams; empty if none waits."""
    streams = list(EventStream.all_tenants.filter(pk__in={letter.stream_id for letter in letters}))
    obstacles = [obstacle for stream in streams if (obstacle := obstacle_of(stream))]
    if not obstacles:
        return ""
    if len(streams) == 1:
        return f"{'It waits' if count == 1 else 'They wait'}, because {obstacles[0]}"
    return f"The redeliveries of {len(obstacles)} of {len(streams)} streams wait, because these streams are held or disabled."


def outlook_panel(outlook: Outlook) -> Panel:
    """Return the kinds of failure of the dead letters, the most frequent kind first."""
    rows = [
        [Cell(kind.event_type), Cell(kind.failure), Cell(f"{kind.count:,}"), Cell(f"{kind.sent:,}")]
        for kind in outlook.kinds[:_KINDS_SHOWN]
    ]
    return Panel("What would be redelivered", ("Event", "Kind of failure", "Dead letters", "Would be sent"), rows)
