"""Filters of the audit log, and the lines of its export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.db.models import Q, QuerySet

from foundation.database.keyset_pages import KeysetPage, Place, page_of
from foundation.export_lines import Field, heading_of, line_of, record_of
from foundation.timestamps import wire_time
from identity.models import AuditEntry

Format = Literal["csv", "jsonl"]
CONTENT_TYPES: dict[Format, str] = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
_AT_ONCE = 500
_COLUMNS = (
    "id", "at", "tenant_id", "actor_kind", "actor_id", "actor_name", "ip", "user_agent", "kind", "act", "object_type", "object_id",
    "object_text", "reason", "before", "after", "facts", "act_id",
)  # fmt: skip
_FIELDS = [Field(name, name) for name in _COLUMNS]


@dataclass(frozen=True, slots=True)
class Question:
    """The filters of a list. An empty filter does not apply. If `tenant_id` is None, entries of all tenants and of the platform are
    selected."""

    tenant_id: str | None
    actor: str = ""
    object_type: str = ""
    object_id: str = ""
    kind: str = ""
    act_id: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def walked(self) -> QuerySet[AuditEntry]:
        """Return the entries that match all filters for which an index exists: tenant, actor, object id, act id and time."""
        rows = AuditEntry.objects.all() if self.tenant_id is None else AuditEntry.objects.filter(tenant_id=self.tenant_id)
        exact = {"actor_name": self.actor, "object_id": self.object_id, "act_id": self.act_id}
        rows = rows.filter(**{name: value for name, value in exact.items() if value})
        rows = rows if self.since is None else rows.filter(at__gte=self.since)
        return rows if self.until is None else rows.filter(at__lte=self.until)

    def further(self) -> Q:
        """Return the filters without an index, which are checked entry by entry. Empty if there are none."""
        return Q(**{name: value for name, value in (("object_type", self.object_type), ("kind", self.kind)) if value})


def browse(question: Question, place: Place | None = None) -> KeysetPage[AuditEntry]:
    """Return one page of the entries that match."""
    return page_of(question.walked(), place, moment="at", further=question.further())


def exported(question: Question, form: Format) -> Iterator[str]:
    """Yield the entries, oldest first, in pages of `_AT_ONCE` entries. If the format is CSV, yield a header line first."""
    if form == "csv":
        yield heading_of(_FIELDS)
    write = record_of(_FIELDS) if form == "csv" else line_of(_FIELDS)
    rows, last = question.walked().filter(question.further()), None
    while True:
        onward = rows if last is None else rows.filter(Q(at__gt=last[0]) | Q(pk__gt=last[1]), at__gte=last[0])
        page = list(onward.order_by("at", "pk").values(*_COLUMNS)[:_AT_ONCE])
        if not page:
            return
        yield "".join(write(_document(row, form)) for row in page)
        last = (page[-1]["at"], page[-1]["id"])


def _document(row: dict[str, Any], form: Format) -> dict[str, Any]:
    document = {**row, "at": wire_time(row["at"]), "act_id": str(row["act_id"])}
    if form == "csv":
        for name in ("before", "after", "facts"):
            document[name] = None if row[name] is None else json.dumps(row[name], ensure_ascii=False, sort_keys=True)
    return document
