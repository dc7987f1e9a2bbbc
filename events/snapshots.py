"""Read everything one recorded document needs in one statement, its root row locked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection

from events.catalogue import DocumentKind
from events.images import Image, RowMark, Rows, rows_before


@dataclass(frozen=True)
class LogIdentity:
    """What the envelope says about the tenant's log: the tenant, its built-in stream and its canonical host."""

    tenant_id: str
    stream_id: str
    host: str


@dataclass(frozen=True)
class Snapshot:
    """A document now and before its unpublished changes, with the rows it refers to and the tenant's log.

    `log` is None when no row of the document is known or its tenant has no log.
    """

    now: Rows
    before: Rows
    marks: tuple[RowMark, ...]
    references: Mapping[str, Mapping[str, Image]]
    tenant_id: str | None
    log: LogIdentity | None


def read_snapshot(kind: DocumentKind, key: str) -> Snapshot:
    """Read the document of this kind and key and lock its root row until the transaction ends.

    The lock is a backstop: services hold it already. A root that is gone has no row to lock.
    """
    with connection.cursor() as cursor:
        cursor.execute(_snapshot_sql(kind), {"key": key, "document_table": kind.table})
        tenant_id, *encoded = cursor.fetchone()
    # Django's connections hand jsonb over as text. The standard decoder keeps whole numbers of any size.
    root, marks, log, *further = (None if value is None else json.loads(value) for value in encoded)
    parts = {part.table: rows or {} for part, rows in zip(kind.parts, further, strict=False)}
    references = {
        table: rows or {} for table, rows in zip((table for _, table in kind.references), further[len(kind.parts) :], strict=True)
    }
    row_marks = tuple(
        RowMark(mark["table_name"], mark["row_key"], mark["image"], datetime.fromisoformat(mark["marked_at"])) for mark in marks or ()
    )
    now = Rows(root, parts)
    return Snapshot(
        now=now,
        before=rows_before(now, row_marks, root_table=kind.table),
        marks=row_marks,
        references=references,
        tenant_id=tenant_id,
        log=LogIdentity(tenant_id, log["stream_id"], log["host"] or "") if log else None,
    )


@cache
def _snapshot_sql(kind: DocumentKind) -> str:
    """Build the statement from the catalogue's own table names; the key is a parameter."""
    key = f"%(key)s::{kind.key_type}"
    tables = [f"root AS MATERIALIZED (SELECT r.* FROM {kind.table} r WHERE r.{kind.key_column} = {key} FOR NO KEY UPDATE)"]
    tables += [
        f"part{index} AS MATERIALIZED (SELECT p.* FROM {part.table} p WHERE p.{part.document_column} = {key})"
        for index, part in enumerate(kind.parts)
    ]
    tables.append(
        "marks AS MATERIALIZED (SELECT m.table_name, m.row_key, m.image, m.tenant_id, m.marked_at FROM events_mark m"
        " WHERE m.document_table = %(document_table)s AND m.document_key = %(key)s)"
    )
    tables.append("tenant AS (SELECT tenant_id FROM root UNION ALL SELECT tenant_id FROM marks LIMIT 1)")
    columns = [
        "(SELECT tenant_id FROM tenant)",
        "(SELECT to_jsonb(root) FROM root)",
        "(SELECT jsonb_agg(to_jsonb(marks)) FROM marks)",
        "(SELECT jsonb_build_object('stream_id', h.stream_id, 'host', d.host) FROM events_head h"
        " LEFT JOIN identity_customdomain d ON d.tenant_id = h.tenant_id AND d.is_canonical"
        " WHERE h.tenant_id = (SELECT tenant_id FROM tenant))",
    ]
    columns += [
        f"(SELECT jsonb_object_agg(part{index}.{part.key_column}::text, to_jsonb(part{index})) FROM part{index})"
        for index, part in enumerate(kind.parts)
    ]
    columns += [_reference_sql(kind, column, table) for column, table in kind.references]
    return f"WITH {', '.join(tables)} SELECT {', '.join(columns)}"


def _reference_sql(kind: DocumentKind, column: str, table: str) -> str:
    sources = [f"SELECT {column} FROM root", *(f"SELECT {column} FROM part{index}" for index in range(len(kind.parts)))]
    sources.append(f"SELECT image ->> '{column}' FROM marks WHERE image IS NOT NULL")
    wanted = " UNION ".join(sources)
    return f"(SELECT jsonb_object_agg(x.id, to_jsonb(x)) FROM {table} x WHERE x.id IN ({wanted}))"


def row_of(model: Any, image: Image) -> Any:
    """Return an unsaved-looking instance of `model` with the values of a row image; never to be saved."""
    values = {field.attname: field.to_python(image[field.column]) for field in model._meta.concrete_fields}
    return model(**values)
