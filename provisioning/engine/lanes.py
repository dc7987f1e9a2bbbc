"""Transitions of a delivery. This module is the only writer of its state and keeps the order per stream and key.

    todo --claim--> todo (leased)     the attempt is counted, the lane is leased with a new token
    leased --settle--> delivered, skipped
    leased --fail--> todo (not_before set), or dead after the last attempt; then the lane continues
    leased --release--> todo          the stream is held; the attempt does not count
    leased --put_off--> todo          the limit of requests is reached (not_before set); no attempt counts
    leased --give_back--> todo        claimed in advance (`claim_ahead`) and not run; no attempt counts
    leased --lease expires--> todo    the next claim stores a lost attempt
    dead --requeue--> todo            redelivered; the next claim ends it as superseded if a newer event was written

Every transition is one transaction, which locks the lane's row first. Only the owner of the token of an unexpired lease writes an outcome.
No transaction is open while an action runs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TypedDict

from django.conf import settings
from django.db import transaction

from foundation import failpoints
from foundation.database.statements import execute, run_script
from provisioning.engine import breaker, delivery_rows, lane_rows
from provisioning.engine.dispatch import NUDGE_GRACE_SECONDS
from provisioning.engine.schedule import attempts_in_series, delay_before_next
from provisioning.models import FailureClass
from provisioning.runs.outcomes import Claim, Failure, LeaseLost, NotDue, Success

_LOST = Failure(FailureClass.LOST.value, "the worker ended during the last attempt")
_MISSING = Failure(FailureClass.MISSING.value, "the event is no longer in the log")
_UPSERT_LANE = """
INSERT INTO provisioning_lane (stream_id, key, tenant_id) VALUES (%s, %s, %s)
ON CONFLICT (stream_id, key) DO UPDATE SET nudged_until = NULL, not_before = clock_timestamp()
"""
SETTLE_AND_TAKE = (delivery_rows.SETTLE, lane_rows.DROP_IF_SETTLED, lane_rows.TAKE_NEXT)


class _Limits(TypedDict):
    lease_seconds: float
    most_attempts: int


@dataclass(frozen=True)
class Step:
    """The step after a settled claim: the next claim, or the reason why there is no next claim."""

    next: Claim | None = None
    is_waiting: bool = False  # The lane has more deliveries and is not leased.
    retry_in: float | None = None  # The lane pauses for this number of seconds before the next attempt.
    is_discarded: bool = False  # The claim had lost its lease; its outcome was not written.


def claim_named(stream_id: str, key: str) -> Claim | NotDue | None:
    """Claim the first delivery of one lane.

    Return None if the lane is empty or leased to another worker, or if the stream is held or disabled.
    """
    with transaction.atomic():
        lane = lane_rows.lock_named(stream_id, key)
        if lane is None or not lane.is_delivering:
            return None
        if lane.due_in > 0:
            return None if lane.is_leased else NotDue(lane.due_in)
        claim = _claim_in(lane.id)
        failpoints.reach("claiming")
        return claim


def claim_oldest(stream_id: str, *, is_probe: bool = False) -> Claim | None:
    """In one stream, find the lane that has been due longest, and claim the first delivery of this lane."""
    with transaction.atomic():
        return _claim_oldest(stream_id, is_probe=is_probe)


def settle(claim: Claim, success: Success, *, go_on: bool) -> Step:
    """Write that the event was delivered or skipped; with `go_on`, claim the next delivery in the same transaction.

    If the claim has lost its lease, the function writes only the account link. It then raises `LeaseLost`; with `go_on`, it may instead
    return a step with `is_discarded`, which can have a claim of another lane.
    """
    if go_on and not claim.is_redelivery:
        step = _settle_and_take(claim, success)
    else:
        with transaction.atomic():
            if not delivery_rows.write_success(claim, success):
                raise LeaseLost
            step = _onward(claim, go_on=go_on)
            failpoints.reach("settling")
    failpoints.reach("settled")
    return step


def fail(claim: Claim, failure: Failure, *, go_on: bool) -> Step:
    """Write a failed attempt: the lane pauses until the next attempt, or the delivery becomes a dead letter and the lane continues.

    Raises `LeaseLost` and writes nothing if the claim has lost its lease.
    """
    delays = settings.DELIVERY_RETRY_DELAYS
    delay = delay_before_next(
        claim.series_attempt,
        delays,
        jitter=settings.DELIVERY_RETRY_JITTER,
        chance=random.random(),  # noqa: S311  (jitter; not security relevant)
        retry_after=failure.retry_after,
    )
    with transaction.atomic():
        _require_lease(claim)
        delivery_rows.write_failure(claim, failure, retry_in=delay)
        trips = breaker.count_failure(claim, failure.error_class)
        if delay is None:
            delivery_rows.bury(claim.delivery_id)
            failpoints.reach("burying")
            step = _onward(claim, go_on=go_on and not trips)
        else:
            lane_rows.leave(claim.lane_id, delay_seconds=delay, grace_seconds=NUDGE_GRACE_SECONDS)
            following = _claim_oldest(claim.stream_id) if go_on and not trips else None
            step = Step(next=following, retry_in=delay)
        failpoints.reach("failing")
    failpoints.reach("failed" if delay is not None else "buried")
    return step


def release(claim: Claim, failure: Failure) -> None:
    """Release a claim because its stream is held: the attempt is stored but does not count. Raises `LeaseLost`."""
    with transaction.atomic():
        _require_lease(claim)
        delivery_rows.write_failure(claim, failure, outcome="held")
        delivery_rows.uncount(claim.delivery_id)
        lane_rows.leave(claim.lane_id)


def put_off(claim: Claim, *, seconds: float) -> Step:
    """Release a claim at the rate limit: the run wrote nothing to the destination, so no attempt is stored. Raises `LeaseLost`."""
    with transaction.atomic():
        _require_lease(claim)
        delivery_rows.give_back(claim.delivery_id)
        lane_rows.leave(claim.lane_id, delay_seconds=seconds, grace_seconds=NUDGE_GRACE_SECONDS)
    return Step(retry_in=seconds)


def give_back(claim: Claim, *, is_settled: bool = False) -> None:
    """Release the lane of a claim that did not run or is already settled; the lane keeps its place in the queue. Raises `LeaseLost`."""
    with transaction.atomic():
        _require_lease(claim)
        if not is_settled:
            delivery_rows.give_back(claim.delivery_id)
        lane_rows.leave(claim.lane_id, delay_seconds=None)


def requeue(*, stream_id: str, key: str, tenant_id: str, delivery_id: int, is_forced: bool) -> bool:
    """Put a dead delivery back into its lane at its original position, inside the caller's transaction.

    Return False if the delivery is not dead.
    """
    open_lane(stream_id=stream_id, key=key, tenant_id=tenant_id)
    return delivery_rows.requeue(delivery_id, is_forced=is_forced)


def open_lane(*, stream_id: str, key: str, tenant_id: str) -> None:
    """Create the lane or make an existing lane due now, inside the caller's transaction."""
    execute(_UPSERT_LANE, [stream_id, key, tenant_id])


def bury_waiting(stream_id: str, cause: Failure, *, limit: int) -> int:
    """Turn at most `limit` waiting deliveries of a stream into dead letters; return their number.

    Claims each delivery first, even if the stream is held, so that no worker runs it meanwhile.
    """
    buried = 0
    while buried < limit and (claim := claim_oldest(stream_id, is_probe=True)) is not None:
        with transaction.atomic():
            _require_lease(claim)
            delivery_rows.uncount(claim.delivery_id)
            delivery_rows.bury(claim.delivery_id, cause)
            lane_rows.leave(claim.lane_id)
        buried += 1
    return buried


def bury_disabled(stream_id: str, cause: Failure, *, through: int, limit: int) -> int:
    """Turn the waiting deliveries of a disabled stream, up to position `through`, into dead letters with copies of their events.

    Processes at most `limit` lanes and returns their number; lanes with a running attempt are skipped.
    """
    with transaction.atomic():
        lane_ids = lane_rows.lock_disabled(stream_id, through=through, limit=limit)
        for delivery_id in lane_rows.waiting_in(lane_ids, through=through):
            delivery_rows.bury(delivery_id, cause)
        for lane_id in lane_ids:
            lane_rows.leave(lane_id)
    return len(lane_ids)


def _require_lease(claim: Claim) -> None:
    if not lane_rows.lock_claimed(claim.lane_id, claim.token):
        raise LeaseLost


def _settle_and_take(claim: Claim, success: Success) -> Step:
    """Settle, delete the lane if it is empty, and claim the next delivery, in one round trip to the database.

    Separate statements would need six round trips, which cost more than the rest of a delivery. A wait for the disk at
    the commit would cost more, too, so the commit is asynchronous. If a crash of the database loses an outcome, the event is delivered
    again with the same event id (ADR 0030).
    """
    values = {
        **delivery_rows.success_values(claim, success),
        "lease": settings.DELIVERY_LEASE_SECONDS,
        "most": attempts_in_series(settings.DELIVERY_RETRY_DELAYS),
        "probe": False,
    }
    (settled, _), _, (_, row) = run_script(SETTLE_AND_TAKE, values, is_repeatable=True)
    taken = lane_rows.taken_of(row)
    following = None if taken is None else taken.claim()
    if not settled:
        return Step(next=following, is_discarded=True)
    if following is None and taken is not None:
        following = _claim_unusual(claim, taken)
    return Step(next=following)


def _claim_unusual(claim: Claim, taken: lane_rows.Taken) -> Claim | None:
    """Find the next claim in the case that `SETTLE_AND_TAKE` has locked a lane without claiming a delivery.

    This happens if the delivery must not run, or if the stream is held or disabled.
    """
    if taken.lane_id == claim.lane_id:
        with transaction.atomic():
            found = _claim_in(claim.lane_id) if lane_rows.lock_claimed(claim.lane_id, claim.token) else None
        if found is not None:
            return found
    return claim_oldest(claim.stream_id)


def _onward(claim: Claim, *, go_on: bool) -> Step:
    """Claim the next delivery in the same lane, otherwise in the lane that has been due longest.

    Without `go_on`, release the lane to other workers instead.
    """
    if not go_on:
        return Step(is_waiting=lane_rows.leave(claim.lane_id, grace_seconds=NUDGE_GRACE_SECONDS))
    following = None if lane_rows.drop_if_empty(claim.lane_id) else _claim_in(claim.lane_id)
    return Step(next=following or _claim_oldest(claim.stream_id))


def _claim_oldest(stream_id: str, *, is_probe: bool = False) -> Claim | None:
    limits = _limits()
    while (taken := lane_rows.take_oldest(stream_id, probe=is_probe, **limits)) is not None:
        claim = taken.claim(is_probe=is_probe) or _claim_in(taken.lane_id, is_probe=is_probe)
        if claim is not None:
            return claim
    return None


def _claim_in(lane_id: int, *, is_probe: bool = False) -> Claim | None:
    """Claim the first delivery that may run in a locked lane; if no delivery may run, release the lane and return None."""
    limits = _limits()
    while (taken := lane_rows.take_first(lane_id, probe=is_probe, **limits)) is not None and taken.delivery_id is not None:
        claim = taken.claim(is_probe=is_probe)
        if claim is not None:
            return claim
        _settle_unrun(taken, taken.delivery_id)
    lane_rows.leave(lane_id)
    return None


def _settle_unrun(taken: lane_rows.Taken, delivery_id: int) -> None:
    """Settle a delivery that must not run."""
    if taken.is_superseded:
        delivery_rows.supersede(delivery_id)
    elif taken.body is None:
        delivery_rows.bury(delivery_id, _MISSING)
    else:
        # The last attempt was counted, but its worker ended without an outcome. Further runs could crash one worker after another.
        delivery_rows.bury(delivery_id, _LOST)


def _limits() -> _Limits:
    return {
        "lease_seconds": settings.DELIVERY_LEASE_SECONDS,
        "most_attempts": attempts_in_series(settings.DELIVERY_RETRY_DELAYS),
    }
