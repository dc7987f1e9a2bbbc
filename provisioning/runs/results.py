"""Results of a run that raised no exception. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Result:
    """The event was `delivered`, that is, written to the destination, or `skipped` with a reason."""

    status: Literal["delivered", "skipped"]
    reason: str
    detail: dict[str, Any] = field(default_factory=dict)


def delivered(reason: str, **detail: Any) -> Result:
    """Return the result of a write, such as `created`."""
    return Result("delivered", reason, detail)


def skipped(reason: str, **detail: Any) -> Result:
    """Return the result of an event that needed no write."""
    return Result("skipped", reason, detail)
