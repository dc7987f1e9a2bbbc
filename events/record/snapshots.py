"""Reads and locks all rows that recorded documents need, in one statement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection

from events.record.catalogue import DocumentKind, Part, Reference
from events.record.images import Image, RowMark, Rows, rows_before


@dataclass(frozen=True)
class LogIdentity:
    """The tenant's part of an envelope: the tenant, its built-in stream and its canonical host."""

    tenant_id: str
    stream_id: str
    host: str


@dataclass(frozen=True)
class Snapshot:
    """A document now and before its unrecorded changes, with the rows to which it refers and the tenant's log.

    `log` is None if the tenant has no log: the tenant was deleted, or it was created without the services.
    """

    now: Rows
    before: Rows
    marks: tuple[RowMark, ...]
    references: Mapping[str, Mapping[str, Image]]
    tenant_id: str
    log: LogIdentity | None


def read_snapshots(kind: DocumentKind, keys: Sequence[str]) -> dict[str, Snapshot]:
    """Read documents of one kind in one statement; lock their rows and the rows of their parents until the transaction ends.

    Returns the documents by key; a document that has neither a row nor a mark is omitted. The services have already locked these rows.
    The locks of this statement protect against code that bypasses the services. A deleted row cannot be locked.
    """
    with connection.cursor() as cursor:
        cursor.execute(_snapshots_sql(kind), {"keys": list(keys), "document_table": kind.table})
        _, *encoded = cursor.fetchone()
    # Django's connections return jsonb as text. Decode it with the standard decoder, which accepts integers of any size.
    roots, marks, logs, *further = ({} if value is None else json.loads(value) for value in encoded)
    parts = dict(zip((part.table for part in kind.parts), further, strict=False))
    references = dict(zip((reference.column for reference in kind.references), further[len(kind.parts) :], strict=True))
    marks_of: dict[str, list[RowMark]] = {}
    tenants = {key: root["tenant_id"] for key, root in roots.items()}
    for mark in marks or ():
        row = RowMark(mark["table_name"], mark["row_key"], mark["image"], datetime.fromisoformat(mark["marked_at"]))
        marks_of.setdefault(mark["document_key"], []).append(row)
        tenants.setdefault(mark["document_key"], mark["tenant_id"])
    found = {}
    for key in keys:
        if key in tenants:
            now = Rows(roots.get(key), {table: rows.get(key, {}) for table, rows in parts.items()})
            log = logs.get(tenants[key])
            found[key] = Snapshot(
                now=now,
                before=rows_before(now, marks_of.get(key, ()), root_table=kind.table),
                marks=tuple(marks_of.get(key, ())),
                references=references,
                tenant_id=tenants[key],
                log=LogIdentity(tenants[key], log["stream_id"], log["host"] or "") if log else None,
            )
    return found


@cache
def _snapshots_sql(kind: DocumentKind) -> str:
    """Build the statement from table names of the catalogue; the keys are a parameter."""
    keys = f"ANY(%(keys)s::{kind.key_type}[])"
    tables = [f"root AS MATERIALIZED (SELECT r.* FROM {kind.table} r WHERE r.id = {keys} ORDER BY r.id FOR NO KEY UPDATE)"]
    tables += [
        f"part{index} AS MATERIALIZED (SELECT p.* FROM {part.table} p WHERE p.{part.document_column} = {keys})"
        for index, part in enumerate(kind.parts)
    ]
    tables.append(
        "marks AS MATERIALIZED (SELECT m.table_name, m.row_key, m.document_key, m.image, m.tenant_id, m.marked_at FROM events_mark m"
        " WHERE m.document_table = %(document_table)s AND m.document_key = ANY(%(keys)s::text[]))"
    )
    tables.append(f"parent AS MATERIALIZED ({_parent_sql(kind)})")
    columns = [
        "(SELECT count(*) FROM parent)",
        "(SELECT jsonb_object_agg(root.id::text, to_jsonb(root)) FROM root)",
        "(SELECT jsonb_agg(to_jsonb(marks)) FROM marks)",
        "(SELECT jsonb_object_agg(h.tenant_id, jsonb_build_object('stream_id', h.stream_id, 'host', d.host)) FROM events_head h"
        " LEFT JOIN identity_customdomain d ON d.tenant_id = h.tenant_id AND d.is_canonical"
        " WHERE h.tenant_id IN (SELECT tenant_id FROM root UNION SELECT tenant_id FROM marks))",
    ]
    columns += [_part_sql(index, part) for index, part in enumerate(kind.parts)]
    columns += [_reference_sql(kind, reference) for reference in kind.references]
    return f"WITH {', '.join(tables)} SELECT {', '.join(columns)}"


def _part_sql(index: int, part: Part) -> str:
    """Return the part's rows by key, grouped by the key of their document."""
    of_document = f"SELECT p.{part.document_column} AS document, jsonb_object_agg(p.id::text, to_jsonb(p)) AS rows"
    return f"(SELECT jsonb_object_agg(d.document::text, d.rows) FROM ({of_document} FROM part{index} p GROUP BY 1) d)"


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
    """Return an instance of `model` with the values of a row image. Never save this instance."""
    values = {field.attname: field.to_python(image[field.column]) for field in model._meta.concrete_fields}
    return model(**values)
