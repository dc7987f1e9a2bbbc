"""Lets the streams of all tenants take turns in a worker process.

The queue of deliveries is first in, first out. After a burst of one tenant, the queue contains hundreds of messages of one stream. As long
as the stream has due lanes, each of these messages starts a turn of two seconds. So a later message of another stream would wait for
minutes. Therefore, after a turn that took its whole time, the process first serves the waiting stream that it has served least recently,
and only then the stream of the next message.
"""

from __future__ import annotations

import os
import time

from foundation.database.statements import fetch_all
from provisioning.engine import lane_rows

# In seconds. If a lane has been due for less than this time, its own message will soon cause a claim.
PATIENCE_SECONDS = 1.0
# In seconds. Older turns are forgotten, so that the table stays small. A stream without a known turn counts as never served.
_MEMORY_SECONDS = 600.0


class Rota:
    """The turns of one worker process: the time of the last turn of each stream, and whether the process used up its last turn."""

    def __init__(self) -> None:
        self._served_at: dict[str, float] = {}
        self._was_full = False

    def note_turn(self, stream_id: str, *, is_full: bool, now: float | None = None) -> None:
        """Store that the stream has had a turn. `is_full` means that the turn used its whole budget, so lanes may still be due."""
        moment = time.monotonic() if now is None else now
        self._served_at = {one: at for one, at in self._served_at.items() if at > moment - _MEMORY_SECONDS}
        self._served_at[stream_id] = moment
        self._was_full = is_full

    def more_urgent(self, stream_id: str) -> tuple[str, str] | None:
        """Return a stream that must have a turn before `stream_id`, and the key of its first due lane; None if there is no such stream.

        Queries the database only after a full turn, because short turns empty the queue fast enough.
        """
        if not self._was_full:
            return None
        waiting = fetch_all(lane_rows.WAITING_STREAMS, {"patience": PATIENCE_SECONDS, "probe": False})
        # Choose the stream that this process has served least recently; among streams that it has not served, the stream whose lane has
        # been due longest.
        served_at = self._served_at
        candidates = [(served_at.get(other, 0.0), place, other, key) for place, (other, key) in enumerate(waiting) if other != stream_id]
        if not candidates:
            return None
        last_turn, _, other, key = min(candidates)
        return (other, key) if last_turn < served_at.get(stream_id, 0.0) else None


_rotas: dict[int, Rota] = {}


def rota() -> Rota:
    """Return the rota of this process; a forked child gets a new rota."""
    return _rotas.setdefault(os.getpid(), Rota())
