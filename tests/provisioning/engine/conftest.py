"""Fixtures of a stream whose destination is in this process and records the delivered events in a list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from events.models import EventStream
from identity.models import Tenant
from provisioning.engine import destinations
from provisioning.runs.outcomes import Claim
from tests.provisioning.engine.logs import DESTINATION, make_stream


@dataclass
class Answer:
    """The result that the destination returns for one event."""

    status: str = "delivered"
    reason: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    log_lines: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)


class Recorder:
    """A destination that records every event, and returns or raises the result that the test has set for the key of the event."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, int]] = []
        self.answers: dict[str, list[Answer | Exception]] = {}

    def __call__(self, claim: Claim, envelope: dict[str, Any], deadline_seconds: float, memory: dict[str, Any]) -> Answer:
        assert envelope["x0stream"] == claim.stream_id
        self.taken.append((claim.key, claim.event_id, claim.attempt))
        answers = self.answers.get(claim.key)
        answer = answers.pop(0) if answers else Answer()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def event_ids(self) -> list[str]:
        return [event_id for _, event_id, _ in self.taken]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    destinations.DESTINATIONS[DESTINATION] = recorder
    yield recorder
    del destinations.DESTINATIONS[DESTINATION]


@pytest.fixture
def stream(tenant: Tenant, recorder: Recorder) -> EventStream:
    return make_stream(tenant)
