"""The transition table of a delivery, and the only writer of its state. Order per stream and key is kept here.

    todo --claim--> todo (leased)     the attempt is counted, the lane leased under a fresh token
    leased --settle--> delivered, skipped
    leased --fail--> todo (not_before set), or dead after the last attempt: the lane goes on
    leased --release--> todo          its stream is held; the attempt does not count
    leased --lease expires--> todo    the next claim notes a lost attempt
    dead --requeue--> todo            redelivered; superseded at its claim when a newer event was written

Every transition is one transaction that locks the lane's row first. A settled outcome needs the token of a live lease.
No transaction is open while an action runs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from provisioning import breaker, delivery_rows, failpoints, lane_rows
from provisioning.dispatch import NUDGE_GRACE_SECONDS
from provisioning.models import FailureClass
from provisioning.outcomes import Claim, Failure, LeaseLost, NotDue, Success
from provisioning.schedule import attempts_in_series, delay_before_next
from provisioning.statements import execute

_LOST = Failure(FailureClass.LOST.value, "the worker ended during the last attempt")
_MISSING = Failure(FailureClass.MISSING.value, "the event is no longer in the log")
_UPSERT_LANE = """
INSERT INTO provisioning_lane (stream_id, key, tenant_id) VALUES (%s, %s, %s)
ON CONFLICT (stream_id, key) DO UPDATE SET nudged_until = NULL, not_before = clock_timestamp()
"""


@dataclass(frozen=True)
class Step:
    """What follows a settled claim: the next claim, or why there is none."""

    next: Claim | None = None
    is_waiting: bool = False  # Something is left in the lane, and nobody has it.
    retry_in: float | None = None  # The lane pauses for a retry.
    trips_breaker: bool = False


def claim_named(stream_id: str, key: str) -> Claim | NotDue | None:
    """Claim the first delivery of one lane; None when nothing is left, another worker has it, or the stream rests."""
    with transaction.atomic():
        found = lane_rows.lock_named(stream_id, key)
        if found is None:
            return None
        lane, is_active, seconds = found
        if not is_active:
            return None
        if seconds > 0:
            return None if lane.token is not None else NotDue(seconds)
        return _claim_waiting(lane)


def claim_oldest(stream_id: str, *, is_probe: bool = False) -> Claim | None:
    """Claim from the lane of the stream that has been due longest."""
    with transaction.atomic():
        return _claim_oldest(stream_id, is_probe=is_probe)


def settle(claim: Claim, success: Success, *, go_on: bool) -> Step:
    """Write that the event was delivered or skipped, and with `go_on` claim what comes next in the same transaction.

    Raises `LeaseLost`, and writes nothing, when the claim does not hold any more.
    """
    with transaction.atomic():
        _require_lease(claim)
        delivery_rows.write_success(claim, success)
        if not success.is_skipped:
            breaker.forget_failures(claim.stream_id)
        step = _onward(claim, go_on=go_on)
        failpoints.reach("settling")
    failpoints.reach("settled")
    return step


def fail(claim: Claim, failure: Failure, *, go_on: bool) -> Step:
    """Write a failed attempt: the lane pauses until the retry, or the delivery becomes a dead letter and the lane goes on.

    Raises `LeaseLost`, and writes nothing, when the claim does not hold any more.
    """
    delays = settings.DELIVERY_RETRY_DELAYS
    delay = delay_before_next(
        claim.series_attempt,
        delays,
        jitter=settings.DELIVERY_RETRY_JITTER,
        chance=random.random(),  # noqa: S311  (spreads retries, guards nothing)
        retry_after=failure.retry_after,
    )
    with transaction.atomic():
        _require_lease(claim)
        delivery_rows.write_failure(claim, failure, retry_in=delay)
        trips = breaker.count_failure(claim, failure.error_class)
        if delay is None:
            delivery_rows.bury(claim.delivery_id)
            step = _onward(claim, go_on=go_on and not trips)
        else:
            lane_rows.leave(claim.lane_id, delay_seconds=delay, grace_seconds=NUDGE_GRACE_SECONDS)
            following = _claim_oldest(claim.stream_id) if go_on and not trips else None
            step = Step(next=following, retry_in=delay)
        failpoints.reach("failing")
    return Step(step.next, step.is_waiting, step.retry_in, trips)


def release(claim: Claim, failure: Failure) -> None:
    """Give a claim back because its stream is held: the attempt is noted and does not count. May raise `LeaseLost`."""
    with transaction.atomic():
        _require_lease(claim)
        delivery_rows.write_failure(claim, failure, outcome="held")
        delivery_rows.uncount(claim.delivery_id)
        lane_rows.leave(claim.lane_id)


def requeue(*, stream_id: str, key: str, tenant_id: str, delivery_id: int, is_forced: bool) -> bool:
    """Put a dead delivery back into its lane, at its old place, inside the caller's transaction. False: not dead."""
    execute(_UPSERT_LANE, [stream_id, key, tenant_id])
    return delivery_rows.requeue(delivery_id, is_forced=is_forced)


def bury_waiting(stream_id: str, cause: Failure, *, limit: int) -> int:
    """Turn what waits in the oldest free lanes of a stream into dead letters; return how many."""
    buried = 0
    while buried < limit:
        with transaction.atomic():
            lane = lane_rows.lock_oldest(stream_id, probe=True)
            if lane is None:
                return buried
            while (waiting := lane_rows.first_waiting(lane.id, probe=True)) is not None:
                delivery_rows.bury(waiting.id, cause)
                buried += 1
            lane_rows.leave(lane.id)
    return buried


def _require_lease(claim: Claim) -> None:
    if not lane_rows.lock_claimed(claim.lane_id, claim.token):
        raise LeaseLost


def _onward(claim: Claim, *, go_on: bool) -> Step:
    """Go on in the same lane, then in the oldest one; or leave the lane to whoever comes."""
    if not go_on:
        return Step(is_waiting=lane_rows.leave(claim.lane_id, grace_seconds=NUDGE_GRACE_SECONDS))
    lane = lane_rows.LockedLane(claim.lane_id, claim.stream_id, claim.key, claim.tenant_id, None, None)
    return Step(next=_claim_waiting(lane) or _claim_oldest(claim.stream_id))


def _claim_oldest(stream_id: str, *, is_probe: bool = False) -> Claim | None:
    while (lane := lane_rows.lock_oldest(stream_id, probe=is_probe)) is not None:
        claim = _claim_waiting(lane, is_probe=is_probe)
        if claim is not None:
            return claim
    return None


def _claim_waiting(lane: lane_rows.LockedLane, *, is_probe: bool = False) -> Claim | None:
    """Claim the first delivery of a locked lane that should run; None when there is none, and the lane is left."""
    if lane.token is not None and lane.delivery_id is not None:
        delivery_rows.write_lost_attempt(lane.delivery_id)
    while (waiting := lane_rows.first_waiting(lane.id, probe=is_probe)) is not None:
        if waiting.is_superseded:
            delivery_rows.supersede(waiting.id)
        elif waiting.body is None:
            delivery_rows.bury(waiting.id, _MISSING)
        elif waiting.series_attempts >= attempts_in_series(settings.DELIVERY_RETRY_DELAYS):
            # Its last attempt was counted and never reported: it would kill worker after worker.
            delivery_rows.bury(waiting.id, _LOST)
        else:
            return _take(lane, waiting, waiting.body, is_probe=is_probe)
    lane_rows.leave(lane.id)
    return None


def _take(lane: lane_rows.LockedLane, waiting: lane_rows.Waiting, body: bytes, *, is_probe: bool) -> Claim:
    token, attempts, series_attempts, started_at = lane_rows.take(lane.id, waiting.id, settings.DELIVERY_LEASE_SECONDS)
    return Claim(
        lane_id=lane.id,
        token=token,
        stream_id=lane.stream_id,
        tenant_id=lane.tenant_id,
        key=lane.key,
        delivery_id=waiting.id,
        event_id=waiting.event_id,
        event_type=waiting.event_type,
        body=body,
        attempt=attempts,
        series_attempt=series_attempts,
        is_redelivery=waiting.is_redelivery,
        is_probe=is_probe,
        started_at=started_at,
    )
