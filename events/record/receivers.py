"""Connects Django's model signals to the recorder; the catalogue lists the recorded models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.db import models
from django.db.models.signals import post_delete, post_save

from events.models import Head, Mark
from events.record.catalogue import DOCUMENT_KINDS, DocumentKind, Part
from events.record.recorder import record_changes, record_document, record_documents
from foundation.hooks import changes_released, hold_back, rows_changed
from identity.models import Tenant

_BULK_CHUNK = 500


def connect() -> None:
    """Connect the signals of every recorded model and of new tenants."""
    by_table = {model._meta.db_table: model for model in apps.get_models()}
    for kind in DOCUMENT_KINDS:
        _listen(kind, by_table[kind.table], None)
        for part in kind.parts:
            _listen(kind, by_table[part.table], part)
    rows_changed.connect(_rows_changed, dispatch_uid="events.rows_changed")
    changes_released.connect(_released, dispatch_uid="events.changes_released")
    post_save.connect(_open_log, sender=Tenant, dispatch_uid="events.open_log")


def _listen(kind: DocumentKind, model: type[models.Model], part: Part | None) -> None:
    attribute = part.document_column if part else "pk"

    def saved(instance: models.Model, *, raw: bool = False, **_: Any) -> None:
        # Do not record a row of a fixture here: other rows of the fixture, to which this row refers, may be loaded later. The mark of the
        # row stays, and the sweep records the change.
        if not raw:
            _record(kind, str(getattr(instance, attribute)), instance)

    def deleted(instance: models.Model, origin: Any = None, **_: Any) -> None:
        # If a part is deleted because its document is deleted, only the deletion of the document is recorded.
        origin_model = origin.model if isinstance(origin, models.QuerySet) else type(origin)
        if part is None or origin_model is model:
            _record(kind, str(getattr(instance, attribute)), instance)

    post_save.connect(saved, sender=model, weak=False, dispatch_uid=f"events.saved.{model._meta.label}")
    post_delete.connect(deleted, sender=model, weak=False, dispatch_uid=f"events.deleted.{model._meta.label}")


def _record(kind: DocumentKind, key: str, row: models.Model) -> None:
    if not hold_back((kind, key), row):
        record_document(kind, key)


def _released(changes: Sequence[tuple[DocumentKind, str]], **_: Any) -> None:
    for start in range(0, len(changes), _BULK_CHUNK):
        record_changes(changes[start : start + _BULK_CHUNK])


def _rows_changed(sender: type[models.Model], keys: Sequence[Any], **_: Any) -> None:
    """Record a bulk write.

    The marks contain the documents to which the rows belonged before the write, and those to which they belong now.
    """
    table = sender._meta.db_table
    kind = next(kind for kind in DOCUMENT_KINDS if table in kind.tables)
    marks = Mark.objects.filter(table_name=table, row_key__in=[str(key) for key in keys]).order_by("id")
    documents = list(dict.fromkeys(marks.values_list("document_key", flat=True)))
    for start in range(0, len(documents), _BULK_CHUNK):
        record_documents(kind, documents[start : start + _BULK_CHUNK])


def _open_log(instance: Tenant, *, created: bool, **_: Any) -> None:
    if created:
        Head.objects.get_or_create(tenant_id=instance.pk)
