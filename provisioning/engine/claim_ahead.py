"""Fast path: while a delivery runs, the database settles the previous delivery and claims the next delivery.

The plain path settles and claims between two deliveries, and handles all other cases. The measurement is in docs/performance.md: without
the fast path, the worker waits alternately for the destination and for the database. A claim made in advance has the same guarantees as any
other claim: the attempt is counted before it starts, and the lane is leased under a token. The claimed lane is never the lane of the
running delivery. Three rules limit the side effects of a claim in advance:

1. Claim in advance only after a delivery that took less than `FAST_MILLISECONDS`. Otherwise a claim could wait in this process for a slow
   destination while another process is idle. A claim that must not run is given back, and its attempt is not counted.
2. Claim in advance only while a first attempt runs. Claim only a delivery that has had no attempt yet and may have more than one
   attempt. So a delivery that crashes its worker costs one other delivery at most one attempt, and never its last attempt.
3. Use the database script only to settle plain successes. Failures, holds and redeliveries are written synchronously, without a pending
   script.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection

from foundation import failpoints
from foundation.database.sent_scripts import ScriptSender, script_sender
from foundation.database.statements import Prepared
from provisioning.engine import delivery_rows, lane_rows, lanes
from provisioning.runs.outcomes import Claim, LeaseLost, Success

logger = logging.getLogger(__name__)

FAST_MILLISECONDS = 50.0
_FIRST_ATTEMPTS_ONLY = 1


class Ahead:
    """The pending database script of one turn; at most one script is pending at a time."""

    def __init__(self) -> None:
        self._sender: ScriptSender | None = None
        self._is_wanted = False
        self._is_alone = False  # True if no other lane was due; then this turn sends no more scripts.
        self._is_under_way = False
        self._settling: Claim | None = None  # The claim that the pending script settles.

    def start(self, claim: Claim) -> None:
        """While `claim` runs, send the script that makes the next claim.

        Sends no script if a script is pending, or if the rules of this module do not allow one.
        """
        is_unfit = claim.series_attempt > 1 or connection.in_atomic_block or not settings.DELIVERY_RETRY_DELAYS
        if self._is_under_way or self._is_alone or not self._is_wanted or is_unfit:
            return
        if self._sender is not None and not self._sender.is_usable:
            # An interrupted run has closed the connections of the thread.
            self._sender = None
        self._sender = self._sender or self._opened()
        if self._sender is not None:
            self._send(self._sender, (lane_rows.TAKE_NEXT,), {"lane": None, "token": None, "stream": claim.stream_id})

    def finish(self) -> Claim | None:
        """Wait for the pending script; return the claim that the script made, if any."""
        if not self._is_under_way or self._sender is None:
            return None
        results = self._sender.results()
        settled, self._settling, self._is_under_way = self._settling, None, False
        if settled is not None:
            failpoints.reach("settled")
            if not results[0][0]:
                warn_of_discarded(settled)
        taken = lane_rows.taken_of(results[-1][1])
        claim = None if taken is None else taken.claim()
        if claim is None and taken is not None and settled is not None and taken.lane_id == settled.lane_id:
            # The next delivery of the lane of `settled` already had an attempt, or must not run. So the script made no claim, but the lane
            # is still leased.
            _give_back(settled, is_settled=True)
        self._is_alone = claim is None
        return claim

    def settle(self, claim: Claim, success: Success, following: Claim | None) -> bool:
        """Settle a success while `following` runs. Return False if the caller must settle the success; then `following` was given back."""
        self._is_wanted = success.duration_ms < FAST_MILLISECONDS and not claim.is_redelivery
        if following is None or self._sender is None:
            return False
        if not self._is_wanted or not self._sender.is_usable:
            _give_back(following)
            return False
        self._settling = claim
        self._send(self._sender, lanes.SETTLE_AND_TAKE, delivery_rows.success_values(claim, success))
        return True

    def stop(self, following: Claim | None) -> None:
        """Send no more scripts for now, and give back the claim that was made in advance."""
        self._is_wanted = False
        if following is not None:
            _give_back(following)

    def abandon(self) -> None:
        """Close the connection of the pending script without reading its result, because an error ends the turn. If the script has claimed
        a lane, the lease of this lane expires."""
        if self._is_under_way and self._sender is not None:
            self._sender.close()

    def _opened(self) -> ScriptSender | None:
        try:
            sender = script_sender()
            sender.prepare(lanes.SETTLE_AND_TAKE)
        except OperationalError as error:
            self._is_alone = True
            logger.warning("no delivery is claimed in advance: %s", type(error).__name__)
            return None
        return sender

    def _send(self, sender: ScriptSender, script: Sequence[Prepared], values: dict[str, Any]) -> None:
        limits = {"lease": settings.DELIVERY_LEASE_SECONDS, "most": _FIRST_ATTEMPTS_ONLY, "probe": False}
        self._is_under_way = True
        sender.send(script, {**values, **limits})


def _give_back(claim: Claim, *, is_settled: bool = False) -> None:
    with suppress(LeaseLost):
        lanes.give_back(claim, is_settled=is_settled)


def warn_of_discarded(claim: Claim) -> None:
    """Log that the lease of the claim ended before its outcome was written, so the outcome is discarded."""
    text = "the outcome of the event %s on the stream %s came after the lease of its claim and is discarded"
    logger.warning(text, claim.event_id, claim.stream_id)
