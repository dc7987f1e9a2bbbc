"""A destination for real workers: it appends to a file. It waits while the file `pause` exists, is slow while `slow` exists, and refuses
while `refuse` exists.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provisioning.engine import destinations
from provisioning.runs.outcomes import Claim
from tests.faults import endless

__all__ = ["endless", "take_event"]

DESTINATION = "recorder"
DIRECTORY_VARIABLE = "RECORDING_DIR"
SLOW_SECONDS = 0.05


@dataclass
class Taken:
    status: str = "delivered"
    reason: str = "recorded"
    detail: dict[str, Any] = field(default_factory=dict)
    log_lines: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)


def take_event(claim: Claim, envelope: dict[str, Any], deadline_seconds: float, memory: dict[str, Any]) -> Taken:
    """Append the start and the end of the run. In between, wait until there is no file `pause`, sleep if there is a file `slow`, and fail
    if there is a file `refuse`.
    """
    directory = Path(os.environ[DIRECTORY_VARIABLE])
    number = envelope["data"]["object"].get("number")
    line = {"key": claim.key, "number": number, "event": claim.event_id, "attempt": claim.attempt, "pid": os.getpid()}
    _append(directory, {**line, "step": "start"})
    while (directory / "pause").exists():
        time.sleep(0.01)
    if (directory / "slow").exists():
        time.sleep(SLOW_SECONDS)
    if (directory / "refuse").exists():
        raise ConnectionError("the recorder refuses")
    _append(directory, {**line, "step": "end"})
    return Taken()


def _append(directory: Path, line: dict[str, Any]) -> None:
    # A single write to a file opened for appending is atomic.
    descriptor = os.open(directory / "events", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    finally:
        os.close(descriptor)


destinations.DESTINATIONS[DESTINATION] = take_event
