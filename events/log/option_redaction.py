"""Removes secret options of connections from stored envelopes and marks. No other code changes stored bytes (docs/adr/0075)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from events.log.envelope import encode_stored
from events.log.stored_envelope import envelope_of
from events.models import Event, Mark
from events.record.catalogue import DOCUMENT_KINDS
from identity.models import Connection
from identity.options.schemas.nodes import Path, split

CONNECTION = next(kind for kind in DOCUMENT_KINDS if kind.name == "connection")
CONNECTION_EVENTS = tuple(name for name in (CONNECTION.created, CONNECTION.updated, CONNECTION.deleted) if name)
# The number of events per query. It is small, because the body of each event can take 512 KiB of memory.
_AT_ONCE = 50


@dataclass(frozen=True)
class Redaction:
    """An envelope without its secrets, and the path and value of each secret. A `repr` never shows the values."""

    envelope: dict[str, Any] = field(repr=False)
    removed: list[tuple[str, Path, Any]] = field(repr=False)

    @property
    def body(self) -> bytes:
        return encode_stored(self.envelope)


def redaction_of(envelope: dict[str, Any]) -> Redaction:
    """Return the envelope of a connection event without the options that are secret in the schema of its strategy."""
    removed: list[tuple[str, Path, Any]] = []
    data = envelope.get("data")
    if not isinstance(data, dict) or envelope.get("type") not in CONNECTION_EVENTS:
        return Redaction(envelope, removed)
    cleaned = {name: _cleaned(value, removed) if name in ("object", "previous_object") else value for name, value in data.items()}
    return Redaction({**envelope, "data": cleaned}, removed)


def _cleaned(document: Any, removed: list[tuple[str, Path, Any]]) -> Any:
    options = document.get("options") if isinstance(document, dict) else None
    if not isinstance(options, dict):
        return document
    parts = split(Connection(strategy=str(document.get("strategy"))).option_schema, options)
    removed += [(str(document.get("id")), path, value) for path, value in parts.secrets.items()]
    shown = {**document, "options": parts.shown}
    # The document of a connection omits empty options, so omit them here, too.
    return shown if parts.shown else {name: value for name, value in document.items() if name != "options"}


def redactions(tenant_id: str) -> Iterator[tuple[int, Redaction]]:
    """Yield the key and the redaction of each stored event of the tenant that contains secrets of a connection."""
    for event_type in CONNECTION_EVENTS:
        last = 0
        # Each page is read with the index by tenant and type.
        rows = Event.objects.filter(tenant_id=tenant_id, type=event_type).order_by("pk").values_list("pk", "body")
        while chunk := list(rows.filter(pk__gt=last)[:_AT_ONCE]):
            for key, body in chunk:
                found = redaction_of(envelope_of(body))
                if found.removed:
                    yield key, found
            last = chunk[-1][0]


def redact_events(tenant_id: str) -> int:
    """Rewrite the bodies of the tenant's connection events; return the number of rewritten events. Ids, positions and times do not change.

    Each event is updated in a separate statement, so an interrupted run can be repeated.
    """
    count = 0
    for key, found in redactions(tenant_id):
        count += Event.objects.filter(pk=key).update(body=found.body)
    return count


def redact_marks(tenant_id: str | None) -> int:
    """Remove the secrets from the images in marks that wait for the sweep, and return the number of changed marks.

    Marks that the sweep has locked are skipped.
    """
    count = 0
    with transaction.atomic():
        for mark in _marks(tenant_id).select_for_update(skip_locked=True):
            shown = Connection.shown_image(mark.image or {})
            if shown != mark.image:
                count += Mark.objects.filter(pk=mark.pk).update(image=shown)
    return count


def plain_marks(tenant_id: str | None) -> int:
    """Return the number of marks that contain secrets."""
    return sum(Connection.shown_image(mark.image or {}) != mark.image for mark in _marks(tenant_id))


def _marks(tenant_id: str | None) -> QuerySet[Mark]:
    marks = Mark.objects.filter(table_name=CONNECTION.table, image__isnull=False)
    return marks if tenant_id is None else marks.filter(tenant_id=tenant_id)
