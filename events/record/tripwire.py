"""The tripwire: triggers that mark every change of a recorded row, and the sweep that records the changes of leftover marks.

The recorder deletes a mark in the transaction of the change. If a mark is committed, Django sent no signal for the change: a bulk write,
raw SQL, a fixture or another program made it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection, transaction
from django.db.models.signals import post_migrate

from events.models import Mark
from events.record.catalogue import DOCUMENT_KINDS, DocumentKind
from events.record.recorder import record_document

logger = logging.getLogger(__name__)

# ON CONFLICT DO UPDATE instead of DO NOTHING, because the upsert must lock the mark: a concurrent sweep could delete an unlocked mark.
_FUNCTION = """
CREATE OR REPLACE FUNCTION events_tripwire() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    document_column text := TG_ARGV[0];
    document_table text := TG_ARGV[1];
    old_row jsonb;
    new_row jsonb;
    moved boolean := true;
BEGIN
    IF TG_OP <> 'INSERT' THEN old_row := to_jsonb(OLD); END IF;
    IF TG_OP <> 'DELETE' THEN new_row := to_jsonb(NEW); END IF;
    IF TG_OP = 'UPDATE' THEN
        IF OLD.tenant_id <> NEW.tenant_id THEN
            RAISE EXCEPTION 'a row of % never changes its tenant', TG_TABLE_NAME USING ERRCODE = 'check_violation';
        END IF;
        moved := old_row ->> 'id' IS DISTINCT FROM new_row ->> 'id'
              OR old_row ->> document_column IS DISTINCT FROM new_row ->> document_column;
    END IF;
    IF old_row IS NOT NULL THEN
        INSERT INTO events_mark AS m (table_name, row_key, document_key, document_table, tenant_id, image, marked_at)
        VALUES (
            TG_TABLE_NAME, old_row ->> 'id', old_row ->> document_column, document_table, OLD.tenant_id, old_row, clock_timestamp()
        )
        ON CONFLICT (table_name, row_key, document_key) DO UPDATE SET image = m.image;
    END IF;
    IF new_row IS NOT NULL AND moved THEN
        INSERT INTO events_mark AS m (table_name, row_key, document_key, document_table, tenant_id, image, marked_at)
        VALUES (TG_TABLE_NAME, new_row ->> 'id', new_row ->> document_column, document_table, NEW.tenant_id, NULL, clock_timestamp())
        ON CONFLICT (table_name, row_key, document_key) DO UPDATE SET image = m.image;
    END IF;
    RETURN NULL;
END
$body$
"""


@dataclass(frozen=True)
class Trigger:
    """One trigger, as the catalogue of events defines it."""

    table: str
    name: str
    definition: str

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"{_FUNCTION}{self.definition}".encode()).hexdigest()


def expected_triggers() -> list[Trigger]:
    """Return the triggers of every recorded table; an update fires the trigger only if a column changes that is not `silent`."""
    return [trigger for kind in DOCUMENT_KINDS for trigger in _triggers_of(kind)]


def _triggers_of(kind: DocumentKind) -> Iterator[Trigger]:
    tables = [(kind.table, "id", kind.silent), *((part.table, part.document_column, part.silent) for part in kind.parts)]
    for table, document_column, silent in tables:
        call = f"EXECUTE FUNCTION events_tripwire('{document_column}', '{kind.table}')"
        visible = [column for column in _columns(table) if column not in silent]
        changed = " OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in visible)
        yield Trigger(table, "events_tripwire_rows", f"AFTER INSERT OR DELETE ON {table} FOR EACH ROW {call}")
        yield Trigger(table, "events_tripwire_update", f"AFTER UPDATE ON {table} FOR EACH ROW WHEN ({changed}) {call}")


def _columns(table: str) -> list[str]:
    model = next(model for model in apps.get_models() if model._meta.db_table == table)
    return [str(field.column) for field in model._meta.concrete_fields]


def install() -> None:
    """Create the triggers that are missing or differ from the catalogue of events; leave all other triggers unchanged."""
    wanted = [trigger for trigger in expected_triggers() if installed().get((trigger.table, trigger.name)) != trigger.fingerprint]
    if not wanted:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_FUNCTION)
        for trigger in wanted:
            cursor.execute(f"DROP TRIGGER IF EXISTS {trigger.name} ON {trigger.table}")
            cursor.execute(f"CREATE TRIGGER {trigger.name} {trigger.definition}")
            cursor.execute(f"COMMENT ON TRIGGER {trigger.name} ON {trigger.table} IS '{trigger.fingerprint}'")


def installed() -> dict[tuple[str, str], str]:
    """Return the fingerprints of the enabled triggers in the database, by table and name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, t.tgname, coalesce(obj_description(t.oid, 'pg_trigger'), '')"
            " FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
            " WHERE t.tgname LIKE 'events_tripwire%%' AND t.tgenabled <> 'D' AND c.relnamespace = current_schema()::regnamespace",
            [],
        )
        return {(table, name): fingerprint for table, name, fingerprint in cursor.fetchall()}


def connect() -> None:
    """Install the triggers after every migration, because a migration that rebuilds a table drops its triggers."""
    post_migrate.connect(_after_migrate, sender=apps.get_app_config("events"), dispatch_uid="events.tripwire")


def _after_migrate(**_: Any) -> None:
    # Django also sends the signal after migrations of other apps, when the table of marks may not exist yet.
    if "events_mark" in connection.introspection.table_names():
        install()


@dataclass
class _Turn:
    """Where the next sweep of this process starts: after the last mark of the previous sweep, or at 0 if that sweep reached the end."""

    after: int = 0


_turn = _Turn()


def sweep(limit: int = 500) -> int:
    """Record the changes of up to `limit` leftover marks; return the number of events.

    First records the existing documents, each parent before its children; then the deleted documents, each child before its parent. Each
    document has a separate transaction. If another transaction has locked a row, a later sweep records its change. If a document cannot be
    recorded, the sweep logs an error and keeps the marks. The next sweep of the process starts after the last mark of this sweep, so kept
    marks do not block newer marks.
    """
    order = {kind.table: rank for rank, kind in enumerate(DOCUMENT_KINDS)}
    kinds = {kind.table: kind for kind in DOCUMENT_KINDS}
    # A mark of a table that is no longer recorded stays for an operator to examine; the sweep processes all other marks.
    marks = Mark.objects.filter(document_table__in=kinds, id__gt=_turn.after).order_by("id")[:limit]
    found = list(marks.values_list("id", "document_table", "document_key"))
    _turn.after = found[-1][0] if len(found) == limit else 0
    documents = sorted(dict.fromkeys((table, key) for _, table, key in found), key=lambda document: order[document[0]])
    present = [document for document in documents if _exists(kinds[document[0]], document[1])]
    gone = [document for document in reversed(documents) if document not in set(present)]
    return sum(_sweep_document(kinds[table], key) for table, key in [*present, *gone])


def _sweep_document(kind: DocumentKind, key: str) -> int:
    try:
        with transaction.atomic():
            if not _locked(kind, key):
                return 0
            mark = Mark.objects.filter(document_table=kind.table, document_key=key).order_by("-marked_at").first()
            recorded = record_document(kind, key, moment=mark.marked_at if mark else None)
            if recorded:
                _count_swept(recorded)
    except Exception:
        # An error in one document must not stop the sweep of the other documents.
        logger.exception("the leftover change of %s %s could not be recorded", kind.name, key)
        return 0
    if recorded:
        logger.warning("a change of %s %s bypassed the signals; recorded now", kind.name, key)
    return recorded


def _count_swept(count: int) -> None:
    # All sweeps update the same row. So update it in the last statement of the transaction, which keeps the lock short.
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO events_tally (name, count) VALUES ('swept', %s)"
            " ON CONFLICT (name) DO UPDATE SET count = events_tally.count + EXCLUDED.count",
            [count],
        )


def _locked(kind: DocumentKind, key: str) -> bool:
    """Lock a document's row, its parent and its marks without waiting; return False if another transaction has locked one of these rows."""
    free = _row_is_free(kind.table, kind.key_type, [key])
    if kind.parent is not None:
        free = free and _row_is_free(kind.parent.table, "text", _parents(kind, kind.parent.column, key))
    marks = "SELECT id FROM events_mark WHERE document_table = %s AND document_key = %s"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT (SELECT count(*) FROM ({marks}) a), (SELECT count(*) FROM ({marks} FOR UPDATE SKIP LOCKED) b)", [kind.table, key] * 2
        )
        total, unlocked = cursor.fetchone()
    return bool(free and total and total == unlocked)


def _parents(kind: DocumentKind, column: str, key: str) -> list[str]:
    """Return the ids of the parents that the row and its marks name in `column`."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {column} FROM {kind.table} WHERE id = %s::{kind.key_type}"
            f" UNION SELECT image ->> '{column}' FROM events_mark WHERE document_table = %s AND document_key = %s AND image IS NOT NULL",
            [key, kind.table, key],
        )
        return [row[0] for row in cursor.fetchall()]


def _row_is_free(table: str, key_type: str, keys: list[str]) -> bool:
    """Lock the existing rows of `table`; return False if another transaction has locked one of these rows."""
    wanted = f"SELECT id FROM {table} WHERE id = ANY(%s::{key_type}[])"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT (SELECT count(*) FROM ({wanted}) a), (SELECT count(*) FROM ({wanted} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) b)",
            [keys, keys],
        )
        there, unlocked = cursor.fetchone()
    return bool(there == unlocked)


def _exists(kind: DocumentKind, key: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {kind.table} WHERE id = %s::{kind.key_type}", [key])
        return cursor.fetchone() is not None
