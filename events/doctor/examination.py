"""Runs the checks in order. A refusal or a failed connection ends the examination."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from events.client.failures import Refused, StreamError, Unreachable
from events.doctor.advice import BUFFERING
from events.doctor.answers import examine_answers
from events.doctor.canary import examine_canary
from events.doctor.findings import Finding, Verdict, fail
from events.doctor.flow import (
    describe_refusal,
    examine_compression,
    held_back,
    judge_heartbeat,
    judge_long_life,
    judge_opening,
)
from events.doctor.heads import judge_head
from events.doctor.observing import Observation, Patient
from events.doctor.slots import examine_slots
from events.doctor.transport import examine_http2, judge_transport


@dataclass(frozen=True)
class Plan:
    """The optional longer checks to run."""

    watch_seconds: float
    idle_minutes: float | None = None
    with_canary: bool = False
    with_slots: bool = False
    # Seconds after which a check fails if the stream has not begun, or if no slot is free.
    opening_seconds: float = 5.0
    slot_seconds: float = 30.0


def examine(patient: Patient, plan: Plan, tell: Callable[[str], None]) -> Iterator[Finding]:
    """Yield each finding as soon as its check ends. If an error ends the examination, the last finding describes this error."""
    try:
        yield from examine_answers(patient)
        yield from examine_compression(patient, plan.opening_seconds)
        yield from _examine_stream(patient, plan, tell)
        if plan.with_slots:
            yield examine_slots(patient, plan.slot_seconds, tell)
    except Refused as error:
        yield describe_refusal(error)
    except StreamError as error:
        yield fail("connection", str(error), "Check the address, the DNS name, the port and the certificate")


def _examine_stream(patient: Patient, plan: Plan, tell: Callable[[str], None]) -> Iterator[Finding]:
    try:
        stream = patient.ask()
    except Unreachable as error:
        yield held_back(patient, error, "headers", BUFFERING)
        return
    with stream:
        if stream.status != 200:
            raise stream.refusal()
        yield judge_transport(patient.server, stream, datetime.now(UTC))
        yield examine_http2(patient.server, patient.deadlines.connect)
        yield from judge_head(stream)
        observation = Observation(stream)
        is_flowing = True
        for finding in judge_opening(observation, plan.opening_seconds):
            is_flowing = is_flowing and finding.verdict is not Verdict.FAIL
            yield finding
        if is_flowing:
            if plan.with_canary:
                yield examine_canary(patient, observation)
            yield judge_heartbeat(observation, plan.watch_seconds, tell)
            yield judge_long_life(observation, plan.idle_minutes, tell)
