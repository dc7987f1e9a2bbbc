"""Works for one turn after a delivery message: claims a delivery, sends it while no transaction is open, writes the outcome, and claims the
next delivery."""

from __future__ import annotations

import time

from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from foundation import failpoints
from foundation.database.statements import forget_plans
from foundation.tenancy import tenant_bound
from foundation.tracing import spans as tracing
from provisioning.actions.pace import NoTurn
from provisioning.engine import breaker, lane_rows, lanes, nudges, stream_tallies
from provisioning.engine.claim_ahead import Ahead, warn_of_discarded
from provisioning.engine.destinations import Memory, run_destination
from provisioning.engine.fairness import rota
from provisioning.engine.retrying import LONGEST_RETRY_SECONDS, RetryLater
from provisioning.links.rows import write_links
from provisioning.models import FailureClass
from provisioning.runs.outcomes import Claim, Failure, LeaseLost, NotDue, Success

# Limits of a turn, so that other streams get turns, too. The start of a turn costs about as much as ten deliveries.
TURN_SECONDS = 2.0
TURN_DELIVERIES = 500
# A run must end this many seconds before the end of its lease, so that the outcome can still be written.
_LEASE_MARGIN_SECONDS = 5.0


class Turn:
    """The time and the number of deliveries that one turn may use, and the actions and secrets that the turn has read."""

    def __init__(self, seconds: float = TURN_SECONDS, deliveries: int | None = None) -> None:
        self._ends = time.monotonic() + seconds
        self._left = deliveries or TURN_DELIVERIES
        self.is_over = False
        self.memory: Memory = {}
        self.ahead = Ahead()

    def goes_on(self) -> bool:
        """Count a delivery; tell whether the limits of the turn permit another delivery."""
        self._left -= 1
        self.is_over = self._left <= 0 or time.monotonic() >= self._ends
        return not self.is_over


def deliver_lane(stream_id: str, key: str) -> None:
    """Deliver for one turn: first from the named lane, then from other lanes of the same stream, beginning with the lane that has been due
    longest.

    If this process must serve another stream first, that stream gets the turn, and the nudge for the named lane is sent again. Raises
    `RetryLater` if the named lane pauses for at most 30 seconds; the sweeper handles longer pauses.
    """
    forget_plans()
    asked = (stream_id, key)
    served = rota().more_urgent(stream_id) or asked
    if served != asked:
        nudges.send(nudges.DELIVER, *asked)
    turn = Turn()
    pause, left = _take_turn(*served, turn)
    rota().note_turn(served[0], is_full=turn.is_over)
    if left is None and turn.is_over:
        left = lane_rows.due_key(served[0])
    if left is not None:
        nudges.send(nudges.DELIVER, served[0], left)
    if pause is None or pause > LONGEST_RETRY_SECONDS:
        return
    if served == asked:
        raise RetryLater(pause)
    nudges.send(nudges.DELIVER, *served, countdown=pause)


def _take_turn(stream_id: str, key: str, turn: Turn) -> tuple[float | None, str | None]:
    """Deliver from one lane after another until the turn is over.

    Return two values: the seconds for which the named lane pauses (None without a pause), and the key of a lane with more deliveries (None
    without such a lane).
    """
    pause, left = None, None
    claim = lanes.claim_named(stream_id, key)
    if isinstance(claim, NotDue):
        pause, claim = claim.seconds, None
    claim = claim or lanes.claim_oldest(stream_id)
    try:
        while claim is not None:
            step = deliver_claim(claim, turn)
            left = claim.key if step.is_waiting else None
            if claim.key == key:
                pause = step.retry_in
            elif step.retry_in is not None and step.retry_in <= LONGEST_RETRY_SECONDS:
                nudges.send(nudges.DELIVER, stream_id, claim.key, countdown=step.retry_in)
            claim = step.next
    finally:
        turn.ahead.abandon()
    return pause, left


def probe_stream(stream_id: str, tenant_id: str) -> None:
    """Run one delivery of a held stream. Resume the stream in three cases: the delivery succeeds, it fails only because of its document, or
    no delivery waits.
    """
    claim = lanes.claim_oldest(stream_id, is_probe=True)
    if claim is None:
        breaker.resume_stream(stream_id=stream_id, tenant_id=tenant_id)
    else:
        deliver_claim(claim, Turn(deliveries=1))


def deliver_claim(claim: Claim, turn: Turn) -> lanes.Step:
    """Run the claimed delivery and write its outcome. Discards the outcome if the lease has ended.

    If the returned step has a claim that was made in advance, the commit of the outcome may still be pending when this function returns.
    """
    failpoints.reach("claimed")
    turn.ahead.start(claim)
    result = _traced_run(claim, turn.memory) if tracing.is_on() else run_claim(claim, turn.memory)
    stream_tallies.note(claim, result)
    failpoints.reach("ran")
    try:
        following, go_on = turn.ahead.finish(), turn.goes_on()
    except (DatabaseError, InterfaceError):
        # The script that makes the next claim has failed; if it leased a lane, this lease expires. The script has its own connection. So
        # write the outcome of this run over Django's connection, which may still work.
        _written(claim, result, go_on=False)
        raise
    if go_on and isinstance(result, Success):
        if turn.ahead.settle(claim, result, following):
            return lanes.Step(next=following)
    else:
        turn.ahead.stop(following)
    return _written(claim, result, go_on=go_on)


def _traced_run(claim: Claim, memory: Memory) -> Success | Failure | NoTurn:
    ids = {"tenant.id": claim.tenant_id, "stream.id": claim.stream_id, "event.id": claim.event_id, "event.type": claim.event_type}
    numbers = {"delivery.id": claim.delivery_id, "attempt": claim.attempt}
    with tracing.continued(claim.trace, "provisioning.attempt", **ids, **numbers):
        result = run_claim(claim, memory)
        kind = stream_tallies.kind_of(result)
        tracing.note(result=kind)
        if isinstance(result, Failure):
            tracing.note_failure(kind)
    return result


def run_claim(claim: Claim, memory: Memory) -> Success | Failure | NoTurn:
    """Run the stream's destination. Converts every exception to a `Failure`, but returns `NoTurn` unchanged."""
    deadline = min(settings.DELIVERY_BUDGET_SECONDS, settings.DELIVERY_LEASE_SECONDS - _LEASE_MARGIN_SECONDS)
    started = time.monotonic()
    try:
        with tenant_bound(claim.tenant_id):
            outcome = run_destination(claim, max(deadline, 0.1), memory)
    except NoTurn as put_off:
        return put_off
    except Exception as error:  # noqa: BLE001  (an action is foreign code: any error is a failed delivery)
        return failure_of(error, _milliseconds_since(started))
    is_skipped = outcome.status == "skipped"
    return Success(
        is_skipped=is_skipped,
        # A deletion of a missing account counts as written. If an older event is redelivered afterwards, it therefore ends as superseded;
        # otherwise it would create the account again.
        is_written=not is_skipped or claim.is_deletion,
        duration_ms=_milliseconds_since(started),
        reason=outcome.reason or "",
        detail=outcome.detail,
        log_lines=outcome.log_lines,
        links=outcome.links,
    )


def failure_of(error: Exception, duration_ms: float) -> Failure:
    """Convert an exception to a `Failure`, with the fields of `provisioning.runs.failures` that the exception has."""
    kind = getattr(error, "kind", FailureClass.ACTION)
    if isinstance(error, SoftTimeLimitExceeded | TimeoutError | ConnectionError):
        kind = FailureClass.TRANSIENT
    return Failure(
        error_class=str(kind) if kind in FailureClass.values else FailureClass.ACTION.value,
        message=str(error) or type(error).__name__,
        duration_ms=duration_ms,
        status=getattr(error, "status", None),
        scim_type=getattr(error, "scim_type", None) or "",
        retry_after=getattr(error, "retry_after", None),
        exchanges=getattr(error, "exchanges", None) or [],
        log_lines=getattr(error, "log_lines", None) or [],
        links=getattr(error, "links", None) or [],
    )


def _written(claim: Claim, result: Success | Failure | NoTurn, *, go_on: bool) -> lanes.Step:
    try:
        if isinstance(result, Failure):
            # Store the account links that the run has changed, even if the claim is lost.
            write_links(result.links)
        step = _conclude(claim, result, go_on=go_on)
    except LeaseLost:
        step = lanes.Step(is_discarded=True)
        if isinstance(result, Success):
            write_links(result.links)
    if step.is_discarded:
        warn_of_discarded(claim)
    return step


def _conclude(claim: Claim, result: Success | Failure | NoTurn, *, go_on: bool) -> lanes.Step:
    if isinstance(result, NoTurn):
        # Return a step without a next claim, so that the turn ends: other deliveries to this destination would reach the rate limit, too.
        # If a probe was put off, the breaker starts the next probe later.
        return lanes.put_off(claim, seconds=result.seconds)
    if isinstance(result, Success):
        step = lanes.settle(claim, result, go_on=go_on)
    elif result.error_class == FailureClass.MISCONFIGURED or (claim.is_probe and breaker.speaks_against_destination(result.error_class)):
        # Hold the stream before the claim is released. A crash between these two steps then leaves a held stream, and a lease that expires.
        breaker.hold_stream(stream_id=claim.stream_id, tenant_id=claim.tenant_id, reason=result.message)
        failpoints.reach("held")
        lanes.release(claim, result)
        return lanes.Step()
    else:
        step = lanes.fail(claim, result, go_on=go_on)
    if claim.is_probe:
        failpoints.reach("probed")
        breaker.resume_stream(stream_id=claim.stream_id, tenant_id=claim.tenant_id)
    return step


def _milliseconds_since(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 3)
