"""Checks that a service behind a proxy notices when a client disconnects. If it does not, lost connections use up the tenant's slots."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

from events.client.exchange import Exchange
from events.doctor.advice import DISCONNECTS, to_do
from events.doctor.findings import Finding, fail, ok, skip, warn
from events.doctor.heads import between
from events.doctor.observing import Patient

_MOST_STREAMS = 64
_PROMPT_SECONDS = 3.0
_PAUSE_SECONDS = 0.25


def examine_slots(patient: Patient, patience_seconds: float, tell: Callable[[str], None]) -> Finding:
    """Open streams up to the tenant's limit, close all of them, and measure the time until the service admits a new stream.

    Raises `StreamError`.
    """
    named, count = "", 0
    with ExitStack() as open_streams:
        while count < _MOST_STREAMS:
            stream = open_streams.enter_context(patient.ask())
            if stream.status != 200:
                _require_full(stream)
                break
            named, count = between(stream), count + 1
    if count == _MOST_STREAMS:
        return skip("slots", f"{count} streams were admitted; the limit of this tenant is higher than this check tests")
    if count == 0:
        return skip("slots", "other clients use all slots of the tenant, so this check cannot run")
    tell(f"  {count} streams were opened, up to the limit, and closed; waiting for a free slot")
    seconds = _free_again(patient, patience_seconds)
    facts = {"limit": count, "seconds": seconds}
    if seconds is None:
        text = f"{count} streams were closed, and {patience_seconds:g} s later no slot is free: the service does not notice the disconnects"
        return fail("slots", text, to_do(DISCONNECTS, named), **facts)
    text = f"{count} streams were opened, up to the limit; after they were closed, a slot was free within {seconds:.1f} s"
    if seconds > _PROMPT_SECONDS:
        return warn("slots", text, "The service notices disconnects late: " + to_do(DISCONNECTS, named), **facts)
    return ok("slots", text, **facts)


def _require_full(stream: Exchange) -> None:
    """Raise `StreamError` unless the response reports that the limit is reached."""
    error = stream.refusal()
    if error.code != "connection_limit":
        raise error


def _free_again(patient: Patient, patience_seconds: float) -> float | None:
    started = time.monotonic()
    while time.monotonic() - started < patience_seconds:
        with patient.ask() as stream:
            if stream.status == 200:
                return time.monotonic() - started
            _require_full(stream)
        time.sleep(_PAUSE_SECONDS)
    return None
