"""Counts what one run of `events tail` has read (events per type, connections, the last offset), and makes the summary. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Account:
    """Counts events and connections during one run. `offset` is the offset of the last event in the output."""

    started_at: float
    offset: str | None = None
    connections: int = 0
    types: Counter[str] = field(default_factory=Counter)

    @property
    def events(self) -> int:
        return self.types.total()

    def summary(self, *, now: float, command: Sequence[str]) -> str:
        """Return the summary lines: totals, duration, and the command that resumes."""
        reconnects = max(self.connections - 1, 0)
        head = f"{_count(self.events, 'event')} in {_duration(now - self.started_at)}, {_count(reconnects, 'reconnect')}"
        lines = [head + "".join(f"\n  {count:6}  {name}" for name, count in sorted(self.types.items()))]
        if self.offset is None:
            lines.append("last offset: none was received")
        else:
            lines += [f"last offset: {self.offset}", f"continue with: {shlex.join(command)}"]
        return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"
