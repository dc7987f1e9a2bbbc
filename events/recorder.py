"""The only writer of events: turns the change of a document into its event, in the transaction of the change."""

from __future__ import annotations

import json
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from events.catalogue import DocumentKind, changes_between
from events.documents import document_of, event_data
from events.envelope import encode_envelope, event_source
from events.images import Image, referenced_keys
from events.numbering import numberer
from events.schemas import check_data
from events.snapshots import LogIdentity, Snapshot, read_snapshot
from identity.ids import new_event_id


class TransactionRequired(RuntimeError):
    """A change can only be recorded inside the transaction that makes it."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class LogMissing(RuntimeError):
    """The tenant of a changed row has no log, so the change cannot be recorded."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


_INSERT = """
WITH cleared AS (
    DELETE FROM events_mark WHERE document_table = %(table)s AND document_key = %(key)s
), recorded AS (
    INSERT INTO events_event (event_id, tenant_id, type, root, time, body)
    SELECT * FROM unnest(
        %(ids)s::text[], %(tenants)s::text[], %(types)s::text[], %(roots)s::text[], %(times)s::timestamptz[], %(bodies)s::bytea[]
    )
    RETURNING id, tenant_id
)
INSERT INTO events_outbox (event, tenant_id) SELECT id, tenant_id FROM recorded ORDER BY id
"""


def record_document(kind: DocumentKind, key: str, *, moment: datetime | None = None) -> int:
    """Record what happened to the document since its last event; return the number of events, mostly 1 or 0.

    1. Read the document's rows and marks in one statement, the root row locked.
    2. Compare the document before the marked changes with the one now (`changes_between`).
    3. In one more statement insert event and outbox row and clear the marks.
    4. After commit, tell the numberer of this process that the tenant has something to number.

    `moment` is the time of the change, now by default. Raises `TransactionRequired`, `LogMissing`, `EventTooLarge`
    when a message would exceed the size limit, and `SchemaViolation` for data that would break a subscriber; each
    of them undoes the change itself.
    """
    if not connection.in_atomic_block:
        raise TransactionRequired
    snapshot = read_snapshot(kind, key)
    if not snapshot.marks:
        return 0
    references = _with_vanished(kind, snapshot)
    before = document_of(kind, snapshot.before, references)
    after = document_of(kind, snapshot.now, references)
    moment = moment or timezone.now()
    log = snapshot.log or _missing_log(snapshot)
    rows = []
    for change in changes_between(kind, before, after):
        data = event_data(kind, change, snapshot, references, moment)
        check_data(change.type, data)
        event_id = new_event_id()
        rows.append(
            (event_id, log.tenant_id, change.type, kind.root_of(change.document), moment, _body(change.type, event_id, data, log, moment))
        )
    _insert(kind, key, rows)
    if rows:
        transaction.on_commit(lambda: numberer().notify(log.tenant_id), robust=True)
    return len(rows)


def _body(event_type: str, event_id: str, data: dict[str, object], log: LogIdentity, moment: datetime) -> bytes:
    return encode_envelope(
        event_type=event_type,
        source=event_source(settings.EVENT_SOURCE_NAMESPACE, log.tenant_id, log.host),
        event_id=event_id,
        time=moment,
        data=data,
        tenant_id=log.tenant_id,
        stream_id=log.stream_id,
        max_bytes=settings.EVENT_MAX_BYTES,
        prefix=settings.EVENT_ATTRIBUTE_PREFIX,
    )


def _insert(kind: DocumentKind, key: str, rows: list[tuple[str, str, str, str, datetime, bytes]]) -> None:
    ids, tenants, types, roots, times, bodies = zip(*rows, strict=True) if rows else ((),) * 6
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT,
            {
                "table": kind.table,
                "key": key,
                "ids": list(ids),
                "tenants": list(tenants),
                "types": list(types),
                "roots": list(roots),
                "times": list(times),
                "bodies": list(bodies),
            },
        )


def _with_vanished(kind: DocumentKind, snapshot: Snapshot) -> dict[str, dict[str, Image]]:
    """Return the referenced rows, and those that are gone already from their marks: deleted around the services."""
    found = {column: dict(rows) for column, rows in snapshot.references.items()}
    for reference in kind.references:
        known = found[reference.column]
        missing = referenced_keys((snapshot.now, snapshot.before), reference.column) - set(known)
        if missing:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT row_key, image FROM events_mark WHERE table_name = %s AND row_key = ANY(%s) AND image IS NOT NULL",
                    [reference.table, sorted(missing)],
                )
                known.update((row_key, json.loads(image)) for row_key, image in cursor.fetchall())
    return found


def _missing_log(snapshot: Snapshot) -> LogIdentity:
    raise LogMissing(f"The tenant {snapshot.tenant_id!r} has no log: create tenants through identity.services.tenants.")
