"""Renders HTTP exchanges of an attempt: request, response, duration. Secrets were masked before storage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from foundation.admin.badges import Tone

NOT_STORED = "None stored. Exchanges are stored only for failed attempts, and for a limited time."
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class ShownExchange:
    """One request with its response. `failure` is set if there was no response."""

    number: int
    verb: str
    path: str
    status: str
    tone: Tone
    duration: str
    failure: str
    request_headers: Sequence[tuple[str, str]]
    request_body: str
    response_headers: Sequence[tuple[str, str]]
    response_body: str


def exchange_blocks(exchanges: Any) -> SafeString | str:
    """Render the exchanges as blocks, one below the other."""
    shown = [_shown(number, item) for number, item in enumerate(_documents(exchanges), start=1)]
    return render_to_string("admin/exchanges.html", {"exchanges": shown}) if shown else NOT_STORED


def mapped_resource(exchanges: Any) -> Any:
    """Return the mapped resource from the body of the last write request; None if no write request was sent."""
    bodies = [_json(item.get("request_body")) for item in _documents(exchanges) if str(item.get("verb")) not in _READS]
    return next((body for body in reversed(bodies) if body is not None), None)


def remote_before(exchanges: Any) -> Any:
    """Return the resource from the last lookup before the first write; None if the lookup found nothing, or its response was not stored."""
    found = None
    for item in _documents(exchanges):
        if str(item.get("verb")) not in _READS:
            break
        body = _json(item.get("response_body"))
        if isinstance(body, dict):
            resources = body.get("Resources", body)
            found = (resources[0] if resources else None) if isinstance(resources, list) else resources
    return found


def laid_out(body: Any) -> str:
    """Return a JSON value with indentation."""
    return json.dumps(body, indent=2, ensure_ascii=False)


def _shown(number: int, item: Mapping[str, Any]) -> ShownExchange:
    status = item.get("status")
    duration = item.get("duration_ms")
    return ShownExchange(
        number=number,
        verb=str(item.get("verb", "")),
        path=str(item.get("path", "")),
        status="no answer" if status is None else str(status),
        tone="good" if isinstance(status, int) and 200 <= status < 300 else "bad",
        duration=f"{duration:.0f} ms" if isinstance(duration, int | float) else "",
        failure=str(item.get("failure") or ""),
        request_headers=_headers(item.get("request_headers")),
        request_body=_pretty(item.get("request_body")),
        response_headers=_headers(item.get("response_headers")),
        response_body=_pretty(item.get("response_body")),
    )


def _documents(exchanges: Any) -> list[Mapping[str, Any]]:
    return [item for item in exchanges if isinstance(item, Mapping)] if isinstance(exchanges, list) else []


def _headers(headers: Any) -> list[tuple[str, str]]:
    return [(str(name), str(value)) for name, value in headers.items()] if isinstance(headers, Mapping) else []


def _pretty(body: Any) -> str:
    value = _json(body)
    return str(body or "") if value is None else laid_out(value)


def _json(body: Any) -> Any:
    """Return the JSON object or list of a stored body; None for anything else, such as a truncated body."""
    try:
        value = json.loads(body) if isinstance(body, str) else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None
