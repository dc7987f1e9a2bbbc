"""Read everything one recorded document needs in one statement, its root row locked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection

from events.catalogue import DocumentKind, Reference
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
    """Read the document of this kind and key; lock its row and its parent's until the transaction ends.

    The locks are a backstop: services hold them already. A row that is gone cannot be locked.
    """
    with connection.cursor() as cursor:
        cursor.execute(_snapshot_sql(kind), {"key": key, "document_table": kind.table})
        _, tenant_id, *encoded = cursor.fetchone()
    # Django's connections hand jsonb over as text. The standard decoder keeps whole numbers of any size.
    root, marks, log, *further = (None if value is None else json.loads(value) for value in encoded)
    parts = {part.table: rows or {} for part, rows in zip(kind.parts, further, strict=False)}
    references = {reference.column: rows or {} for reference, rows in zip(kind.references, further[len(kind.parts) :], strict=True)}
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
    tables = [f"root AS MATERIALIZED (SELECT r.* FROM {kind.table} r WHERE r.id = {key} FOR NO KEY UPDATE)"]
    tables += [
        f"part{index} AS MATERIALIZED (SELECT p.* FROM {part.table} p WHERE p.{part.document_column} = {key})"
        for index, part in enumerate(kind.parts)
    ]
    tables.append(
        "marks AS MATERIALIZED (SELECT m.table_name, m.row_key, m.image, m.tenant_id, m.marked_at FROM events_mark m"
        " WHERE m.document_table = %(document_table)s AND m.document_key = %(key)s)"
    )
    tables.append("tenant AS (SELECT tenant_id FROM root UNION ALL SELECT tenant_id FROM marks LIMIT 1)")
    tables.append(f"parent AS MATERIALIZED ({_parent_sql(kind)})")
    columns = [
        "(SELECT count(*) FROM parent)",
        "(SELECT tenant_id FROM tenant)",
        "(SELECT to_jsonb(root) FROM root)",
        "(SELECT jsonb_agg(to_jsonb(marks)) FROM marks)",
        "(SELECT jsonb_build_object('stream_id', h.stream_id, 'host', d.host) FROM events_head h"
        " LEFT JOIN identity_customdomain d ON d.tenant_id = h.tenant_id AND d.is_canonical"
        " WHERE h.tenant_id = (SELECT tenant_id FROM tenant))",
    ]
    columns += [f"(SELECT jsonb_object_agg(p.id::text, to_jsonb(p)) FROM part{index} p)" for index in range(len(kind.parts))]
    columns += [_reference_sql(kind, reference) for reference in kind.references]
    return f"WITH {', '.join(tables)} SELECT {', '.join(columns)}"


def _parent_sql(kind: DocumentKind) -> str:
    if kind.parent is None:
        return "SELECT 1 WHERE false"
    column = kind.parent.column
    keys = f"SELECT {column} FROM root UNION SELECT image ->> '{column}' FROM marks WHERE image IS NOT NULL"
    return f"SELECT 1 FROM {kind.parent.table} x WHERE x.id IN ({keys}) ORDER BY x.id FOR NO KEY UPDATE"


def _reference_sql(kind: DocumentKind, reference: Reference) -> str:
    column = reference.column
    sources = [f"SELECT {column} FROM root"]
    sources += [f"SELECT {column} FROM part{index}" for index in range(len(kind.parts))]
    sources.append(f"SELECT (image ->> '{column}')::{reference.key_type} FROM marks WHERE image IS NOT NULL")
    shown = ", ".join(f"'{name}', x.{name}" for name in reference.columns)
    return (
        f"(SELECT jsonb_object_agg(x.id::text, jsonb_build_object({shown})) FROM {reference.table} x"
        f" WHERE x.id IN ({' UNION '.join(sources)}))"
    )


def row_of(model: Any, image: Image) -> Any:
    """Return an unsaved-looking instance of `model` with the values of a row image; never to be saved."""
    values = {field.attname: field.to_python(image[field.column]) for field in model._meta.concrete_fields}
    return model(**values)
