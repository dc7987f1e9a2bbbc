"""Fast path: while a delivery runs, the database settles the one before it and claims the one after it.

The plain path settles and claims between two deliveries, and serves everything else; `foundation.database.sent_scripts` has the
figure. A fast destination would otherwise wait for the database, and the database for it. What holds of every claim holds of one
that is made ahead: the attempt is counted before it starts, the lane is leased under a token, and it is another lane than the
one in which something runs. Three rules keep it from harming anybody:

1. Only behind a delivery that got through within `FAST_MILLISECONDS`: nothing waits in this process for a slow destination
   while another process is idle. After anything else the claim is given back, as if it had never been made.
2. Only while a first attempt runs, and only for a first attempt that is not the last one: a delivery that kills its worker takes
   one attempt of another one with it at most, never the last.
3. Only a plain success is settled this way. Failures, holds and redeliveries are written at once, with nothing under way.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection

from foundation.database.sent_scripts import ScriptSender, script_sender
from foundation.database.statements import Prepared
from provisioning import failpoints
from provisioning.engine import delivery_rows, lane_rows, lanes
from provisioning.runs.outcomes import Claim, LeaseLost, Success

logger = logging.getLogger(__name__)

FAST_MILLISECONDS = 50.0
_FIRST_ATTEMPTS_ONLY = 1


class Ahead:
    """What the database does for one turn while a delivery runs: at most one script is under way."""

    def __init__(self) -> None:
        self._sender: ScriptSender | None = None
        self._is_wanted = False
        self._is_alone = False  # No other lane was due: this turn asks no more.
        self._is_under_way = False
        self._settling: Claim | None = None  # What the script under way settles, if anything.

    def start(self, claim: Claim) -> None:
        """Ask for the claim after this one, which is about to run, unless that is under way or not wanted."""
        is_unfit = claim.series_attempt > 1 or connection.in_atomic_block or not settings.DELIVERY_RETRY_DELAYS
        if self._is_under_way or self._is_alone or not self._is_wanted or is_unfit:
            return
        self._sender = self._sender or self._opened()
        if self._sender is not None:
            self._send(self._sender, (lane_rows.TAKE_NEXT,), {"lane": None, "token": None, "stream": claim.stream_id})

    def finish(self) -> Claim | None:
        """Wait for what is under way; return the claim that was made, if there is one."""
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
            # What comes next in its lane is no first attempt or must not run, and the lane is still leased.
            _give_back(settled, is_settled=True)
        self._is_alone = claim is None
        return claim

    def settle(self, claim: Claim, success: Success, following: Claim | None) -> bool:
        """Have a success settled while `following` runs; False when it must be settled at once, with `following` given back."""
        self._is_wanted = success.duration_ms < FAST_MILLISECONDS and not claim.is_redelivery
        if following is None or self._sender is None:
            return False
        if not self._is_wanted:
            _give_back(following)
            return False
        self._settling = claim
        self._send(self._sender, lanes.SETTLE_AND_TAKE, delivery_rows.success_values(claim, success))
        return True

    def stop(self, following: Claim | None) -> None:
        """Ask no more for now, and give back what was claimed ahead."""
        self._is_wanted = False
        if following is not None:
            _give_back(following)

    def abandon(self) -> None:
        """Leave what is under way to the lease of its lane: an error ends the turn, and nobody reads the answer."""
        if self._is_under_way and self._sender is not None:
            self._sender.close()

    def _opened(self) -> ScriptSender | None:
        try:
            sender = script_sender()
            sender.prepare(lanes.SETTLE_AND_TAKE)
        except OperationalError as error:
            self._is_alone = True
            logger.warning("nothing is claimed ahead: %s", type(error).__name__)
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
    """Say that somebody else had taken the claim over before its outcome was written."""
    logger.warning("the outcome of %s on %s came after its lease and is discarded", claim.event_id, claim.stream_id)
