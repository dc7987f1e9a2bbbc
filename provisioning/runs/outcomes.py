"""Claims and the outcomes of their runs, independent of the destination. Pure."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

_LONGEST_MESSAGE = 2000
_CHANGING_PART = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b(?:evt|est|con)_\w+|[\w.+-]+@[\w.-]+|\d+|'[^']*'|\"[^\"]*\"")


class LeaseLost(Exception):
    """The claim is no longer valid: its lease expired or its lane was deleted. The outcome is discarded."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@dataclass(frozen=True)
class Claim:
    """The right to run one delivery until the lease of its lane ends. Only the owner of `token` can settle the delivery."""

    lane_id: int
    token: UUID
    stream_id: str
    tenant_id: str
    key: str
    destination_type: str
    destination: dict[str, Any]
    delivery_id: int
    event_id: str
    event_type: str
    body: bytes = field(repr=False)
    attempt: int
    series_attempt: int
    is_redelivery: bool
    is_probe: bool
    started_at: datetime
    # Whether `body` contains the profile that the user had at the time of the redelivery, instead of the recorded profile.
    is_rebuilt: bool = False
    # The event's position in the tenant's log. If `is_rebuilt`, the head of the log at the time of the redelivery instead.
    position: int = 0
    # The trace in which the event was recorded (`foundation.tracing`).
    trace: bytes | None = None

    @property
    def is_deletion(self) -> bool:
        """Whether this event deletes the document of the lane; False if the event deletes a relation of this document."""
        return self.event_type == f"{self.key.partition(':')[0]}.deleted"


@dataclass(frozen=True)
class NotDue:
    """The lane pauses, usually after a failed attempt. No delivery of the lane may run for `seconds`."""

    seconds: float


@dataclass(frozen=True)
class Success:
    """The destination accepted the event, or the event was skipped. `is_written` is true for accepted events and for skipped deletions."""

    is_skipped: bool
    is_written: bool
    duration_ms: float
    reason: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    log_lines: list[dict[str, Any]] = field(default_factory=list)
    # The rows of `AccountLink` that the run has changed. They must not be masked.
    links: list[dict[str, Any]] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Failure:
    """The run raised an exception. `error_class` determines the next step of the delivery. `retry_after` determines the shortest pause.

    The breaker also reads `status`. `links` are stored; all other fields are for display.
    """

    error_class: str
    message: str
    duration_ms: float | None = None
    status: int | None = None
    scim_type: str = ""
    retry_after: float | None = None
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    log_lines: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @property
    def fingerprint(self) -> str:
        """Return a digest that is equal for failures of one kind, because it ignores ids, numbers, addresses and quoted texts."""
        normalised = _CHANGING_PART.sub("*", self.message.lower())
        parts = (self.error_class, str(self.status or ""), self.scim_type, normalised)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def shortened(message: str) -> str:
    """Return the message to store: without NUL, which PostgreSQL refuses, and at most 2,000 characters."""
    return message.replace("\0", "")[:_LONGEST_MESSAGE]


def storable(value: Any) -> Any:
    """Return a JSON document that PostgreSQL can store: without NUL, lone surrogates and numbers that are not finite."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {storable(str(name)): storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)
