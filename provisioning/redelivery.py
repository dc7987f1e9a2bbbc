"""Sending dead letters again: back into their lanes, at their old places, with a fresh series of attempts."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from identity.models import Staff
from identity.services.failures import NotFound
from provisioning import lanes, nudges
from provisioning.models import DeadLetter

# One transaction locks the lanes of so many letters.
CHUNK = 200


def redeliver(
    *, tenant_id: str, letter_ids: Iterable[int], actor: str, reason: str = "", staff: Staff | None = None, force: bool = False
) -> int:
    """Let these dead letters of the tenant be delivered again; return how many were open.

    `letter_ids` is the frozen selection: what becomes a dead letter meanwhile is not touched. Each keeps its place
    before newer events of its user. One whose user has a newer event that was written downstream ends as superseded,
    unless `force`. `actor` and `reason` are kept with the letter.
    """
    ids = sorted(set(letter_ids))
    count = 0
    for start in range(0, len(ids), CHUNK):
        with transaction.atomic():
            count += _redeliver_chunk(tenant_id, ids[start : start + CHUNK], actor=actor, reason=reason, staff=staff, force=force)
    return count


def redeliver_event(*, tenant_id: str, stream_id: str, event_id: str, actor: str, reason: str = "", force: bool = False) -> bool:
    """Redeliver one event of a stream; False when its dead letter is not open. Raises `NotFound` without one."""
    letter = DeadLetter.objects.filter(tenant_id=tenant_id, stream_id=stream_id, event_id=event_id).first()
    if letter is None:
        raise NotFound("No delivery of this event has failed.")
    return redeliver(tenant_id=tenant_id, letter_ids=[letter.pk], actor=actor, reason=reason, force=force) == 1


def _redeliver_chunk(tenant_id: str, ids: list[int], *, actor: str, reason: str, staff: Staff | None, force: bool) -> int:
    # Lanes are locked in this order, as the dispatch does, so that the two never wait for each other in a ring.
    letters = DeadLetter.objects.filter(tenant_id=tenant_id, pk__in=ids).order_by("stream_id", "key", "delivery__position")
    count = 0
    for letter in letters:
        requeued = lanes.requeue(
            stream_id=letter.stream_id, key=letter.key, tenant_id=tenant_id, delivery_id=letter.delivery_id, is_forced=force
        )
        if not requeued:
            continue
        count += 1
        letter.state = DeadLetter.State.REDELIVERED
        letter.redelivered_at = timezone.now()
        letter.redelivered_by = staff
        letter.redelivery_actor = actor[:254]
        letter.redelivery_reason = reason
        letter.save(update_fields=["state", "redelivered_at", "redelivered_by", "redelivery_actor", "redelivery_reason"])
        transaction.on_commit(functools.partial(nudges.post, nudges.DELIVER, letter.stream_id, letter.key), robust=True)
    return count
