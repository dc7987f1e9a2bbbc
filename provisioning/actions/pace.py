"""Rate limit of requests to an action's server: a token bucket per action in the database, shared by all processes.

A run waits briefly for a token. A delivery that would have to wait longer is put off, so that its worker is free. Each such delivery
gets its own turn (the time at which it runs), so that ten thousand deliveries do not start at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from foundation.database.statements import execute, fetch_one
from provisioning.actions.setups import Setup
from provisioning.runs.failures import NotSent, TransientFailure
from provisioning.scim.options import rate_of

# Two longest waits in seconds: before the first request of a delivery, and before each later request. The second wait may be longer than
# the first, because a delivery that is put off between two requests would have to repeat the earlier requests.
_FIRST_PATIENCE_SECONDS = 0.25
_PATIENCE_SECONDS = 4.0
# Typical requests per delivery: a lookup and a write.
_REQUESTS_OF_A_TURN = 2
# A delivery is put off for at most this many seconds, even if its computed turn is later. Tokens may be available earlier than computed,
# because other deliveries may use fewer tokens than are reserved for them.
_FURTHEST_TURN_SECONDS = 600.0

# The bucket has room for the tokens of one second, and for at least one token. The update locks the row, so two processes never take the
# same token.
_TAKE = """
INSERT INTO provisioning_pace AS p (action_id, full_at, promised_until)
VALUES (%(action)s, clock_timestamp() + make_interval(secs => %(step)s), clock_timestamp())
ON CONFLICT (action_id) DO UPDATE SET full_at = greatest(p.full_at, clock_timestamp()) + make_interval(secs => %(step)s)
    WHERE p.full_at <= clock_timestamp() + make_interval(secs => %(room)s + %(patience)s)
RETURNING (extract(epoch FROM full_at - clock_timestamp()) - %(room)s - %(step)s)::float8 AS wait
"""
_GIVE_TURN = """
UPDATE provisioning_pace SET promised_until = least(
    greatest(promised_until, full_at - make_interval(secs => %(room)s), clock_timestamp()) + make_interval(secs => %(turn)s),
    clock_timestamp() + make_interval(secs => %(furthest)s) + (full_at - least(full_at, clock_timestamp())))
WHERE action_id = %(action)s
RETURNING extract(epoch FROM promised_until - clock_timestamp())::float8 AS turn,
    (extract(epoch FROM full_at - clock_timestamp()) - %(room)s)::float8 AS near
"""
_REST = """
UPDATE provisioning_pace SET full_at = greatest(full_at, clock_timestamp() + make_interval(secs => %(seconds)s + %(room)s))
WHERE action_id = %(action)s
"""


class NoTurn(NotSent):
    """The rate limit is reached: the delivery runs again after `seconds`, and no attempt is counted."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not now, in {seconds:.1f} s")
        self.seconds = seconds


@dataclass
class Pace:
    """The rate limit of one run. An action without a limit does not wait, and stores nothing."""

    action_id: Any
    rate: float | None
    may_be_put_off: bool
    first_patience: float = _FIRST_PATIENCE_SECONDS
    sleep: Callable[[float], None] = time.sleep
    _is_begun: bool = False
    _may_have_written: bool = False

    def take(self, verb: str, seconds_left: float) -> None:
        """Take a token; wait for the token if it is available soon.

        If no token is available soon, raises `NoTurn` for a delivery that can be put off: its attempt is not counted. For every other run,
        raises `TransientFailure` with the time to wait. A run that may have written is not put off, because its attempt must be counted.
        If the attempt were not counted, the next run could create the account again, without a lookup of the user.
        """
        if self.rate is None:
            return
        patience = min(_PATIENCE_SECONDS if self._is_begun else self.first_patience, max(seconds_left, 0.0))
        (wait,) = fetch_one(_TAKE, {**self._values, "patience": patience}) or (None,)
        if wait is None:
            self._refuse()
        else:
            self._is_begun = True
            self._may_have_written |= verb != "GET"
            if wait > 0:
                self.sleep(wait)

    def rest(self, seconds: float | None) -> None:
        """Block all requests to the server for `seconds`, the time in the `Retry-After` of its response."""
        if self.rate is not None and seconds:
            execute(_REST, {**self._values, "seconds": seconds})

    @property
    def _values(self) -> dict[str, Any]:
        step = 1 / (self.rate or 1)
        return {"action": self.action_id, "step": step, "room": max(1.0, self.rate or 1) * step - step}

    def _refuse(self) -> None:
        values = {**self._values, "turn": _REQUESTS_OF_A_TURN / (self.rate or 1), "furthest": _FURTHEST_TURN_SECONDS}
        turn, near = fetch_one(_GIVE_TURN, values) or (1.0, 1.0)
        if self.may_be_put_off and not self._may_have_written:
            raise NoTurn(max(turn, 0.1))
        text = f"the limit of {self.rate:g} requests per second is reached"
        raise TransientFailure(text, retry_after=max(near, 1.0))


def pace_of(setup: Setup, *, may_be_put_off: bool = False) -> Pace:
    """Return the rate limit of an action. A delivery may be put off; trials and jobs wait longer instead."""
    first = _FIRST_PATIENCE_SECONDS if may_be_put_off else _PATIENCE_SECONDS
    return Pace(setup.action_id, rate_of(setup.options), may_be_put_off, first_patience=first)
