"""What a claim is, and how its run ended, in words that know no destination. Pure."""

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
    """The claim is no longer ours: its lease ran out or its lane is gone, so the outcome is discarded."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@dataclass(frozen=True)
class Claim:
    """The right to run one delivery until `lease_until`; `token` must be shown to settle it."""

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
    # `body` is not the event as it was recorded but one with the profile of the moment at which it was redelivered.
    is_rebuilt: bool = False
    # How new `body` is: the event's position in the tenant's log, or that of the log when the body was made anew.
    position: int = 0

    @property
    def is_deletion(self) -> bool:
        """Whether the document of the lane ceased to exist with this event; the loss of a relation is none."""
        return self.event_type == f"{self.key.partition(':')[0]}.deleted"


@dataclass(frozen=True)
class NotDue:
    """The lane waits, for a retry or for the worker that holds it."""

    seconds: float


@dataclass(frozen=True)
class Success:
    """The destination took the event (`is_written`) or had nothing to do with it."""

    is_skipped: bool
    is_written: bool
    duration_ms: float
    reason: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    log_lines: list[dict[str, Any]] = field(default_factory=list)
    # What was learned of the user's account: rows of `AccountLink`, which a mask must not touch.
    links: list[dict[str, Any]] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Failure:
    """The run raised. `error_class` decides what is done next, the rest is kept for people."""

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
        """Return a digest that is equal for failures of one kind: ids, numbers, addresses and quoted text do not count."""
        normalised = _CHANGING_PART.sub("*", self.message.lower())
        parts = (self.error_class, str(self.status or ""), self.scim_type, normalised)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def shortened(message: str) -> str:
    """Return the message as it is stored: without NUL, which PostgreSQL refuses, and not longer than 2,000 characters."""
    return message.replace("\0", "")[:_LONGEST_MESSAGE]


def storable(value: Any) -> Any:
    """Return a JSON document as PostgreSQL keeps it: what a remote server said may hold NUL, half a surrogate pair, or no number."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {storable(str(name)): storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)
