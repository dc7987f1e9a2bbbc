"""What a run of an action ends with when it raises nothing. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Result:
    """The event was `delivered`, so that the destination holds what it says, or `skipped` for a reason that is shown."""

    status: Literal["delivered", "skipped"]
    reason: str
    detail: dict[str, Any] = field(default_factory=dict)


def delivered(reason: str, **detail: Any) -> Result:
    """Return the result of a write, such as `created`."""
    return Result("delivered", reason, detail)


def skipped(reason: str, **detail: Any) -> Result:
    """Return the result of an event that needed no write."""
    return Result("skipped", reason, detail)
