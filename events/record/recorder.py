"""The only writer of events: records the change of a document as an event, in the transaction of the change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.db import connection
from django.utils import timezone

from events.log.envelope import encode_envelope, event_source
from events.log.numbering import numberer
from events.record.catalogue import DocumentKind, changes_between
from events.record.documents import References, document_of, event_data
from events.record.images import Image, referenced_keys
from events.record.schemas import check_data
from events.record.snapshots import LogIdentity, Snapshot, read_snapshots
from foundation import failpoints
from foundation.database.transactions import after_commit
from foundation.ids import new_event_id
from foundation.tracing import spans as tracing


class TransactionRequired(RuntimeError):
    """A change can be recorded only inside the transaction that makes the change."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class LogMissing(RuntimeError):
    """The tenant of a changed row has no log, so the change cannot be recorded."""


_INSERT = """
WITH cleared AS (
    DELETE FROM events_mark WHERE document_table = %(table)s AND document_key = ANY(%(keys)s)
), recorded AS (
    INSERT INTO events_event (event_id, tenant_id, type, root, time, body, trace)
    SELECT *, %(trace)s::bytea FROM unnest(
        %(ids)s::text[], %(tenants)s::text[], %(types)s::text[], %(roots)s::text[], %(times)s::timestamptz[], %(bodies)s::bytea[]
    )
    RETURNING id, tenant_id
)
INSERT INTO events_outbox (event, tenant_id) SELECT id, tenant_id FROM recorded ORDER BY id
"""
_Row = tuple[str, str, str, str, datetime, bytes]


def record_document(kind: DocumentKind, key: str, *, moment: datetime | None = None) -> int:
    """Record the change of one document; return the number of events. See `record_documents`."""
    return record_documents(kind, [key], moment=moment)


def record_documents(kind: DocumentKind, keys: Sequence[str], *, moment: datetime | None = None) -> int:
    """Record the changes of the documents since their last events; return the number of events, usually one for each document.

    1. Read the rows and marks of all documents in one statement, which locks the rows.
    2. Compare each document before the marked changes with the present document (`changes_between`).
    3. Insert events and outbox rows in the order of `keys`, and delete the marks, in a second statement.
    4. After the commit, add the tenant to the pending tenants of the numberer of this process.

    `moment` is the time of the change, by default now. Raises `TransactionRequired` and `LogMissing`. Raises `EventTooLarge` if
    a message would exceed the size limit, and `SchemaViolation` for data that the schema of the event type does not allow. Each of these
    errors also rolls back the change of the document.
    """
    return record_changes([(kind, key) for key in keys], moment=moment)


def record_changes(changes: Sequence[tuple[DocumentKind, str]], *, moment: datetime | None = None) -> int:
    """Record the changes of documents of several kinds, in the given order. Everything else is the same as in `record_documents`."""
    if not connection.in_atomic_block:
        raise TransactionRequired
    moment = moment or timezone.now()
    # Group the changes by the name of the table, because hashing a `DocumentKind` for each change is slow.
    kinds = {kind.table: kind for kind, _ in changes}
    keys = {table: list(dict.fromkeys(key for kind, key in changes if kind.table == table)) for table in kinds}
    # Read all documents before the first mark is deleted: a document can refer to a deleted row, whose values only its mark contains.
    prepared = {table: _prepared(kind, keys[table], moment) for table, kind in kinds.items()}
    marked = {table: list(of_kind) for table, of_kind in prepared.items() if of_kind}
    if not marked:
        return 0
    rows = [row for kind, key in changes for row in prepared[kind.table].pop(key, ())]
    failpoints.reach("recording")
    with tracing.span("events.record"):
        _insert(marked, rows)
    failpoints.reach("recorded")
    for tenant_id in {row[1] for row in rows}:
        after_commit(numberer().notify, tenant_id)
    return len(rows)


def _prepared(kind: DocumentKind, keys: Sequence[str], moment: datetime) -> dict[str, list[_Row]]:
    """Return the events of each marked document of one kind."""
    marked = {key: snapshot for key, snapshot in read_snapshots(kind, keys).items() if snapshot.marks}
    if not marked:
        return {}
    references = _with_vanished(kind, list(marked.values()))
    return {key: _event_rows(kind, snapshot, references, moment) for key, snapshot in marked.items()}


def _event_rows(kind: DocumentKind, snapshot: Snapshot, references: References, moment: datetime) -> list[_Row]:
    log = snapshot.log or _missing_log(snapshot)
    before = document_of(kind, snapshot.before, references)
    after = document_of(kind, snapshot.now, references)
    rows = []
    for change in changes_between(kind, before, after, has_unshown_change=_has_unshown_change(kind, snapshot)):
        data = event_data(kind, change, snapshot, references, moment)
        check_data(change.type, data)
        event_id = new_event_id()
        body = _body(change.type, event_id, data, log, moment)
        rows.append((event_id, log.tenant_id, change.type, kind.root_of(change.document), moment, body))
    return rows


def _has_unshown_change(kind: DocumentKind, snapshot: Snapshot) -> bool:
    before, now = snapshot.before.root, snapshot.now.root
    return before is not None and now is not None and any(before[column] != now[column] for column in kind.unshown)


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


def _insert(marked: dict[str, list[str]], rows: list[_Row]) -> None:
    """Delete the marks of the documents, table by table, and insert events and outbox rows.

    If all documents are in one table, one statement does both.
    """
    *others, (table, keys) = marked.items()
    ids, tenants, types, roots, times, bodies = zip(*rows, strict=True) if rows else ((),) * 6
    with connection.cursor() as cursor:
        for other, its_keys in others:
            cursor.execute("DELETE FROM events_mark WHERE document_table = %s AND document_key = ANY(%s)", [other, its_keys])
        cursor.execute(
            _INSERT,
            {
                "table": table,
                "keys": keys,
                "ids": list(ids),
                "tenants": list(tenants),
                "types": list(types),
                "roots": list(roots),
                "times": list(times),
                "bodies": list(bodies),
                "trace": tracing.current(),
            },
        )


def _with_vanished(kind: DocumentKind, snapshots: list[Snapshot]) -> dict[str, dict[str, Image]]:
    """Return the referenced rows. If a row was deleted without the services, return the image in its mark instead."""
    found = {column: dict(rows) for column, rows in snapshots[0].references.items()}
    documents = [rows for snapshot in snapshots for rows in (snapshot.now, snapshot.before)]
    for reference in kind.references:
        known = found[reference.column]
        missing = referenced_keys(documents, reference.column) - set(known)
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
