"""Stores when streams wrote canaries: each process keeps the last canaries that it offered to its streams, and reports them on request."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from events.stream.operating import calls
from events.stream.operating.calls import Details
from events.stream.operating.canary import Canary, send_canary
from events.stream.subscription import Subscription

CANARY_FATE = "canary-fate"
_REMEMBERED = 64
_PATIENCE_SECONDS = 2.0
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Arrival:
    """A stream to which the process offered the canary; `elapsed_ms` is None until the stream has written the canary."""

    connection_id: str
    process: str
    elapsed_ms: float | None


@dataclass(frozen=True, slots=True)
class CanaryFate:
    """The result of a canary. `left_out` is the number of streams whose filter excludes the type of the canary.

    `silent_processes` is the number of processes that did not answer; their streams are missing.
    """

    event_id: str
    arrivals: list[Arrival]
    left_out: int
    silent_processes: int

    @property
    def written(self) -> list[float]:
        """Return the times from the request of the canary to its write by each stream, in milliseconds, shortest first."""
        return sorted(arrival.elapsed_ms for arrival in self.arrivals if arrival.elapsed_ms is not None)

    @property
    def waiting(self) -> int:
        return sum(arrival.elapsed_ms is None for arrival in self.arrivals)


@dataclass
class _Offered:
    canary: Canary
    taken_by: list[str] = field(default_factory=list)
    left_out: int = 0


class SentCanaries:
    """The last canaries of one process. Used only in the event loop, like the streams."""

    def __init__(self) -> None:
        self._offered: OrderedDict[str, _Offered] = OrderedDict()

    def note(self, canary: Canary, subscription: Subscription) -> None:
        """Record that the canary was offered to a stream with this subscription."""
        offered = self._offered.setdefault(canary.id, _Offered(canary))
        if canary.type_for(subscription.types) is None:
            offered.left_out += 1
        else:
            offered.taken_by.append(subscription.connection_id)
        if len(self._offered) > _REMEMBERED:
            self._offered.popitem(last=False)

    def tell(self, call: Details) -> dict[str, Any]:
        """Return the arrivals of the canary whose id is in the call, if the canary belongs to the tenant of the call."""
        offered = self._offered.get(call["event"])
        if offered is None or offered.canary.tenant_id != call["tenant"]:
            return {"arrivals": [], "left_out": 0}
        canary, process = offered.canary, calls.process_name()
        elapsed = {name: max(0.0, round((at - canary.requested_at) * 1000, 3)) for name, at in canary.written.items()}
        arrivals = [{"connection_id": name, "process": process, "elapsed_ms": elapsed.get(name)} for name in offered.taken_by]
        return {"arrivals": arrivals, "left_out": offered.left_out}


def measure_canary(*, tenant_id: str, client_id: str, source: str, event_type: str | None = None) -> CanaryFate:
    """Send a canary to the client's open streams. Wait at most two seconds until all have written it. Blocks, so call it in a thread."""
    event_id, _ = send_canary(tenant_id=tenant_id, client_id=client_id, source=source, event_type=event_type)
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        # This call follows the canary on the same channel, so every process gets the canary first.
        fate = _fate(tenant_id, event_id)
        if not fate.waiting or time.monotonic() > until:
            return fate
        time.sleep(_PAUSE_SECONDS)


def _fate(tenant_id: str, event_id: str) -> CanaryFate:
    answers = calls.ask(CANARY_FATE, tenant_id, event=event_id)
    arrivals = [Arrival(**told) for answer in answers.given for told in answer["arrivals"]]
    return CanaryFate(event_id, arrivals, sum(answer["left_out"] for answer in answers.given), answers.silent_processes)
