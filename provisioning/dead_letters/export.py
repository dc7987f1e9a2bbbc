"""Exports dead letters as JSON lines or CSV, without their events. No cell of a CSV is a formula that a spreadsheet would run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from django.db.models import QuerySet

from foundation.export_lines import Field, heading_of, line_of, record_of
from foundation.timestamps import wire_time
from provisioning.models import DeadLetter

Format = Literal["csv", "jsonl"]
CONTENT_TYPES: dict[Format, str] = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
_PAGE = 500
# The reason was masked before storage. Profiles are not exported; the page of a dead letter shows the profile.
_COLUMNS = (
    "id", "tenant_id", "stream_id", "event_id", "event_type", "key", "state", "reason", "error_class", "error_status", "error_scim_type",
    "fingerprint", "attempts", "created_at", "redelivered_at", "redelivery_actor", "redelivery_reason", "resolved_at", "resolution",
    "triaged_at", "triage_actor", "triage_reason",
)  # fmt: skip
_FIELDS = [Field(name, name) for name in _COLUMNS]


def exported(letters: QuerySet[DeadLetter], form: Format) -> Iterator[str]:
    """Yield the CSV header, if any, then the dead letters in chunks of lines, oldest first."""
    if form == "csv":
        yield heading_of(_FIELDS)
    write = record_of(_FIELDS) if form == "csv" else line_of(_FIELDS)
    last = 0
    while page := list(letters.filter(pk__gt=last).order_by("pk").values(*_COLUMNS)[:_PAGE]):
        yield "".join(write(_document(row)) for row in page)
        last = page[-1]["id"]


def _document(row: dict[str, Any]) -> dict[str, Any]:
    return {name: wire_time(value) if name.endswith("_at") and value is not None else value for name, value in row.items()}
