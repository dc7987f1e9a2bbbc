"""Measures the latency of a new event: requests a test event, and waits for it on the stream of the same client."""

from __future__ import annotations

import json
import time

from events.doctor.advice import BUFFERING, to_do
from events.doctor.findings import Finding, fail, ok, skip, warn
from events.doctor.heads import between
from events.doctor.observing import Observation, Patient

_PATH = "/canary"
_PROMPT_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0
# A service without canaries answers with one of these statuses: unknown path, or method not allowed.
_NOT_OFFERED = frozenset({404, 405, 501})


def examine_canary(patient: Patient, observation: Observation) -> Finding:
    """Request a canary and wait for it on the observed stream. Raises `StreamError`."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    path = f"{patient.server.events_path}{_PATH}"
    asked_at = time.monotonic()
    with patient.send("POST", path, headers, b"{}") as answer:
        if answer.status in _NOT_OFFERED:
            return skip("canary", f"this service offers no test events ({answer.status} at {path})")
        if answer.status != 202:
            return warn("canary", f"refused: {answer.refusal()}", "Without a test event the latency of a change is unknown", seconds=None)
        event_id = _id_in(answer.content())
    if event_id is None:
        return warn("canary", "the response contains no event id", "Without a test event the latency of a change is unknown", seconds=None)
    came = observation.watch(_PATIENCE_SECONDS, until=lambda seen: any(event_id in item.data for _, item in seen.messages))
    seconds = time.monotonic() - asked_at
    advice = to_do(BUFFERING, between(observation.stream))
    if not came:
        return fail("canary", f"did not arrive within {_PATIENCE_SECONDS:g} s", advice, seconds=None)
    text = f"arrived {seconds * 1000:.0f} ms after the request"
    if seconds > _PROMPT_SECONDS:
        return warn("canary", text, advice, seconds=seconds)
    return ok("canary", text, seconds=seconds)


def _id_in(body: bytes) -> bytes | None:
    try:
        return str(json.loads(body)["id"]).encode()
    except (ValueError, KeyError, TypeError):
        return None
