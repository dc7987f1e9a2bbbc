"""The current tenant, and managers that refuse reads without a tenant and writes without signals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from django.db import models, transaction

from foundation.database.transactions import lock_rows
from foundation.hooks import bulk_writes, rows_changed, rows_leave

Row = TypeVar("Row", bound=models.Model, covariant=True)

_current_tenant: ContextVar[str | None] = ContextVar("current_tenant", default=None)


class TenantRequired(RuntimeError):
    """A tenant-owned model was read without a current tenant; bind one, or use `all_tenants` explicitly."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class BulkWriteRefused(RuntimeError):
    """A bulk write would change recorded rows without a signal; save or delete row by row."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def current_tenant() -> str | None:
    """Return the id of the tenant bound to this task or thread, if any."""
    return _current_tenant.get()


@contextmanager
def tenant_bound(tenant_id: str) -> Iterator[None]:
    """Bind `tenant_id` for the block: `objects` of every tenant-owned model then returns only rows of this tenant."""
    token = _current_tenant.set(tenant_id)
    try:
        yield
    finally:
        _current_tenant.reset(token)


class GuardedQuerySet(models.QuerySet[Row]):
    """Reads without restriction, and deletes row by row with signals.

    For recorded models, allows and records the bulk writes that name their rows (`bulk_create`, `bulk_update`), and refuses all others.
    """

    def _refuse_if_recorded(self) -> None:
        if getattr(self.model, "is_recorded", False):
            raise BulkWriteRefused(f"{self.model.__name__}: {BulkWriteRefused.__doc__}")

    def update(self, **kwargs: Any) -> int:
        self._refuse_if_recorded()
        with bulk_writes.around(self.model, self):
            return super().update(**kwargs)

    def bulk_create(self, objs: Iterable[Row], *args: Any, **kwargs: Any) -> list[Row]:
        """Insert many rows and record them in the same transaction. Refuses options with which Django would not report the written rows."""
        if args or set(kwargs) - {"batch_size"}:
            self._refuse_if_recorded()
        objs = list(objs)
        with transaction.atomic(using=self.db, savepoint=False), bulk_writes.around(self.model, objs):
            rows = super().bulk_create(objs, *args, **kwargs)
            self._announce(rows)
        return rows

    def bulk_update(self, objs: Iterable[Row], fields: Iterable[str], batch_size: int | None = None) -> int:
        """Lock the roots of many rows, update the rows, and record them in the same transaction."""
        rows = tuple(objs)
        with transaction.atomic(using=self.db, savepoint=False), bulk_writes.around(self.model, rows):
            _lock_roots(rows)
            # Use a plain query set: Django's `bulk_update` calls `update` of the query set, which this class refuses for recorded models.
            count = models.QuerySet[Any](self.model, using=self.db).bulk_update(rows, fields, batch_size)
            self._announce(rows)
        return count

    def _announce(self, rows: Iterable[Row]) -> None:
        keys = [row.pk for row in rows]
        if keys and getattr(self.model, "is_recorded", False):
            rows_changed.send(sender=self.model, keys=keys)

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete row by row with signals, after locking the roots of the rows' documents."""
        with transaction.atomic(using=self.db, savepoint=False):
            _lock_roots(self)
            rows_leave.send(sender=self.model, rows=tuple(self))
            return super().delete()

    def _raw_delete(self, using: str | None) -> int:
        self._refuse_if_recorded()
        # Django returns None when it knows that no row matches, for example for an empty list of keys.
        return int(super()._raw_delete(using) or 0)


def _lock_roots(rows: Iterable[models.Model]) -> None:
    """Lock the documents of recorded rows, each table in key order."""
    roots: dict[type[models.Model], set[Any]] = {}
    for row in rows:
        root = getattr(row, "root", None)
        if root is not None:
            model, key = root()
            roots.setdefault(model, set()).add(key)
    for model, keys in roots.items():
        lock_rows(model, keys)


class AllTenantsManager(models.Manager[Row]):
    """Reads rows of every tenant. `tests/architecture` has the list of allowed uses."""

    def get_queryset(self) -> GuardedQuerySet[Row]:
        return GuardedQuerySet(self.model, using=self._db)


class TenantManager(models.Manager[Row]):
    """Reads rows of the current tenant and raises `TenantRequired` if no tenant is bound."""

    def get_queryset(self) -> GuardedQuerySet[Row]:
        tenant = current_tenant()
        if tenant is None:
            raise TenantRequired(f"{self.model.__name__}: {TenantRequired.__doc__}")
        return self.of(tenant)

    def of(self, tenant_id: str) -> GuardedQuerySet[Row]:
        """Return the rows of the named tenant, regardless of the bound tenant."""
        return GuardedQuerySet(self.model, using=self._db).filter(tenant_id=tenant_id)
