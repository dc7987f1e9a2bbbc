"""Checks that error responses reach the client unchanged: the status, JSON and headers of the service, not a proxy's error page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from events.client.exchange import Exchange
from events.client.failures import printable
from events.doctor.findings import Finding, fail, ok
from events.doctor.observing import Patient

_PASS_ON = "Forward responses of the service unchanged: no error pages, no rewriting (nginx: proxy_intercept_errors off;)"  # noqa: S105
_NOT_A_CURSOR = "doctor-not-a-cursor"


@dataclass(frozen=True)
class Case:
    """A request that the service must refuse, and the expected refusal."""

    name: str
    status: int
    query: str = ""
    last_event_id: str | None = None
    with_token: bool = True
    advice: str = _PASS_ON


_CASES = (
    Case("answer without token", 401, with_token=False),
    Case("answer to a bad cursor", 400, query=f"?from={_NOT_A_CURSOR}"),
    Case("answer to an unknown parameter", 400, query="?doctor=1", advice="Forward the query unchanged. " + _PASS_ON),
    # The service refuses this request only if the proxy forwards `Last-Event-ID`. If a proxy removed the header, the stream would start at
    # the head after each reconnect, and the client would miss events.
    Case("Last-Event-ID arrives", 400, last_event_id=_NOT_A_CURSOR, advice="Forward the header Last-Event-ID to the service"),
)


def examine_answers(patient: Patient) -> Iterator[Finding]:
    """Yield one finding per case. Raises `StreamError` if a request gets no response."""
    for case in _CASES:
        headers = {"Last_Event_ID": case.last_event_id} if case.last_event_id else {}
        with patient.ask(case.query, with_token=case.with_token, **headers) as answer:
            yield _judged(case, answer)


def _judged(case: Case, answer: Exchange) -> Finding:
    facts = {"status": answer.status, "content_type": answer.header("Content-Type")}
    if answer.status != case.status:
        return fail(case.name, f"status {answer.status} instead of {case.status}", case.advice, **facts)
    if answer.header("Content-Type").partition(";")[0].strip() != "application/json" or not _is_document(answer):
        kind = printable(answer.header("Content-Type")) or "no content type"
        return fail(case.name, f"{case.status}, but with {kind} instead of the JSON error document", _PASS_ON, **facts)
    if case.status == 401 and not answer.header("WWW-Authenticate").lower().startswith("bearer"):
        return fail(case.name, "401 without WWW-Authenticate: Bearer", "Forward the header WWW-Authenticate to the client", **facts)
    return ok(case.name, f"{case.status} with its JSON document", **facts)


def _is_document(answer: Exchange) -> bool:
    try:
        document = json.loads(answer.content())
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("statusCode") == answer.status
