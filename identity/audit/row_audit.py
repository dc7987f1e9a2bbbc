"""Writes an audit entry for every change of a watched row, in the transaction of the change, if there is a present act.

Receives Django's signals, and the bulk writes of guarded managers through `hooks.bulk_writes`. In a login or a worker, where there is no
present act, the only cost is one read of a context variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import models, transaction
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save

from foundation.acting import Act, current_act
from foundation.hooks import bulk_writes
from identity.audit.entries import image_of, images_of, record_row

_watched: set[type[models.Model]] = set()
_not_of_clients: set[type[models.Model]] = set()
_BEFORE = "_image_before"


def watch(model: type[models.Model], *, of_clients: bool) -> None:
    """Watch rows of this model from now on. Changes by clients of the management interface are recorded only if `of_clients` is true."""
    _watched.add(model)
    if not of_clients:
        _not_of_clients.add(model)
    name = model._meta.label_lower
    for signal, receiver in (
        (pre_save, _remember_saved),
        (post_save, _note_saved),
        (pre_delete, _remember_deleted),
        (post_delete, _note_deleted),
    ):
        signal.connect(receiver, sender=model, dispatch_uid=f"identity.audit.row_audit.{name}")


def watched() -> frozenset[type[models.Model]]:
    """Return the models whose rows are watched."""
    return frozenset(_watched)


def connect() -> None:
    """Register for bulk writes."""
    bulk_writes.fill(_around_bulk_write)


def _act_on(model: type[models.Model]) -> Act | None:
    act = current_act()
    if act is None or model not in _watched or (act.actor.kind == "client" and model in _not_of_clients):
        return None
    return act


def _remember_saved(sender: type[models.Model], instance: models.Model, raw: bool = False, **_: Any) -> None:  # noqa: FBT001, FBT002
    if not raw and _act_on(sender) is not None:
        instance.__dict__[_BEFORE] = None if instance._state.adding else image_of(instance)


def _note_saved(sender: type[models.Model], instance: models.Model, raw: bool = False, **_: Any) -> None:  # noqa: FBT001, FBT002
    act = _act_on(sender)
    if not raw and act is not None:
        record_row(act, instance, instance.__dict__.pop(_BEFORE, None), image_of(instance))


def _remember_deleted(sender: type[models.Model], instance: models.Model, **_: Any) -> None:
    if _act_on(sender) is not None:
        instance.__dict__[_BEFORE] = image_of(instance)


def _note_deleted(sender: type[models.Model], instance: models.Model, **_: Any) -> None:
    act = _act_on(sender)
    before = instance.__dict__.pop(_BEFORE, None)
    if act is not None and before is not None:
        record_row(act, instance, before, None)


@contextmanager
def _around_bulk_write(model: type[models.Model], rows: Any) -> Iterator[None]:
    """Write an entry for each row that a bulk statement changed. `rows` is a query, or the rows to be written."""
    act = _act_on(model)
    if act is None:
        yield
        return
    with transaction.atomic(savepoint=False):
        named = None if isinstance(rows, models.QuerySet) else list(rows)
        every: models.QuerySet[Any] = models.QuerySet(model)
        before = images_of(rows if named is None else every.filter(pk__in=[row.pk for row in named if row.pk]))
        yield
        keys = list(before) if named is None else [row.pk for row in named if row.pk]
        after = images_of(every.filter(pk__in=keys))
        for row in every.filter(pk__in=keys):
            record_row(act, row, before.get(row.pk), after.get(row.pk))
