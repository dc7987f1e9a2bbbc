"""Redelivers dead letters: puts them back into their lanes, in their original order, with a new series of attempts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from events.models import Event
from foundation import failpoints
from foundation.database.transactions import after_commit
from identity.models import Staff
from identity.services.failures import NotFound
from provisioning.engine import lanes, nudges
from provisioning.links.rows import head_position
from provisioning.models import DeadLetter
from provisioning.runs.current_profile import UserExistsAgain, deletes_living_user, with_current_profile

# The number of dead letters per transaction, which locks the lanes of these dead letters.
CHUNK = 200


@dataclass(frozen=True)
class Order:
    """The parameters of a redelivery: actor, reason, whether to override newer events, and whether to send the current profile."""

    actor: str
    reason: str = ""
    staff: Staff | None = None
    force: bool = False
    with_current_profile: bool = False
    job_id: str = ""


@dataclass(frozen=True)
class Redelivered:
    """The number of redelivered dead letters, and the number of deletions that were not redelivered because the user exists again."""

    count: int = 0
    blocked: int = 0


def redeliver_letters(*, tenant_id: str, letter_ids: Iterable[int], order: Order) -> Redelivered:
    """Redeliver these dead letters of the tenant.

    Each event is delivered before the newer events of its user that still wait. Without force, a redelivery ends as superseded if a newer
    event of the user was written. Without force, the deletion of a user that exists again is not redelivered. Actor and reason are stored
    with the dead letter.
    """
    ids = sorted(set(letter_ids))
    count = blocked = 0
    for start in range(0, len(ids), CHUNK):
        with transaction.atomic():
            done = _redeliver_chunk(tenant_id, ids[start : start + CHUNK], order)
            failpoints.reach("redelivering")
        failpoints.reach("redelivered")
        count, blocked = count + done.count, blocked + done.blocked
    return Redelivered(count, blocked)


def redeliver_one(*, tenant_id: str, letter_id: int, order: Order) -> bool:
    """Redeliver one dead letter; return False if its event is already delivered or being redelivered. Raises `UserExistsAgain`."""
    done = redeliver_letters(tenant_id=tenant_id, letter_ids=[letter_id], order=order)
    if done.blocked:
        raise UserExistsAgain
    return done.count == 1


def redeliver_event(*, tenant_id: str, stream_id: str, event_id: str, actor: str, reason: str = "", force: bool = False) -> bool:
    """Redeliver one event of a stream as `redeliver_one` does. Raises `NotFound` if the event has no dead letter on this stream."""
    letter = DeadLetter.objects.filter(tenant_id=tenant_id, stream_id=stream_id, delivery__event_id=event_id).first()
    if letter is None:
        raise NotFound("No delivery of this event has failed.")
    return redeliver_one(tenant_id=tenant_id, letter_id=letter.pk, order=Order(actor, reason, force=force))


def _redeliver_chunk(tenant_id: str, ids: list[int], order: Order) -> Redelivered:
    # Lock lanes in the order in which a dispatch locks them, to avoid deadlocks.
    letters = DeadLetter.objects.filter(tenant_id=tenant_id, pk__in=ids).order_by("stream_id", "key", "delivery__position")
    count = blocked = 0
    for letter in letters.defer("body", "rebuilt_body"):
        if not order.force and deletes_living_user(tenant_id, letter.event_type, letter.key):
            blocked += 1
            continue
        requeued = lanes.requeue(
            stream_id=letter.stream_id, key=letter.key, tenant_id=tenant_id, delivery_id=letter.delivery_id, is_forced=order.force
        )
        if not requeued:
            continue
        count += 1
        _note(letter, order)
        after_commit(nudges.post, nudges.DELIVER, letter.stream_id, letter.key)
    return Redelivered(count, blocked)


def _note(letter: DeadLetter, order: Order) -> None:
    """Store the parameters with the dead letter. Read the current profile now, under the lock of the lane."""
    # Read the position before the profile: a change of the user between the two reads then has a later position and is delivered after this
    # profile.
    letter.rebuilt_position = head_position(letter.tenant_id) if order.with_current_profile else None
    letter.rebuilt_body = _rebuilt(letter) if order.with_current_profile else None
    letter.state = DeadLetter.State.REDELIVERED
    letter.redelivered_at = timezone.now()
    letter.redelivered_by = order.staff
    letter.redelivery_actor = order.actor[:254]
    letter.redelivery_reason = order.reason
    letter.redelivery_job = order.job_id
    letter.save(
        update_fields=[
            "rebuilt_body",
            "rebuilt_position",
            "state",
            "redelivered_at",
            "redelivered_by",
            "redelivery_actor",
            "redelivery_reason",
            "redelivery_job",
        ]
    )


def _rebuilt(letter: DeadLetter) -> bytes:
    stored = Event.objects.filter(event_id=letter.event_id, tenant_id=letter.tenant_id).values_list("body", flat=True).first()
    body = letter.body if stored is None else stored
    return with_current_profile(
        tenant_id=letter.tenant_id, key=letter.key, event_type=letter.event_type, body=None if body is None else bytes(body)
    )
