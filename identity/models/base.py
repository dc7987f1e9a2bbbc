"""Base classes of rows that belong to a tenant, with their managers. A write and its signals are in one transaction."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from django.db import models, transaction

from foundation.database.transactions import lock_rows
from foundation.tenancy import AllTenantsManager, TenantManager


class TenantOwned(models.Model):
    """A row of one tenant. `objects` selects only rows of the present tenant. Code that uses `all_tenants` must say why."""

    tenant = models.ForeignKey("identity.Tenant", on_delete=models.PROTECT, related_name="+")

    objects: ClassVar[TenantManager[Self]] = TenantManager()
    all_tenants: ClassVar[AllTenantsManager[Self]] = AllTenantsManager()

    class Meta:
        abstract = True
        # Relations and foreign-key checks read through this manager. It also refuses writes that send no signal.
        default_manager_name = "all_tenants"
        base_manager_name = "all_tenants"


class RecordedModel(TenantOwned):
    """A row whose changes become events. `save` and `delete` lock its root, and run in one transaction with their signals."""

    is_recorded: ClassVar[bool] = True

    class Meta(TenantOwned.Meta):
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        with transaction.atomic(savepoint=False):
            self._lock_root()
            super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        with transaction.atomic(savepoint=False):
            self._lock_root()
            return super().delete(*args, **kwargs)

    def root(self) -> tuple[type[models.Model], Any]:
        """Return model and key of the document that contains this row: by default the row itself."""
        return type(self), self.pk

    def _lock_root(self) -> None:
        model, key = self.root()
        if key is not None and not (self._state.adding and model is type(self)):
            lock_rows(model, [key])


class DeletedInParts(models.Model):
    """A row with so many dependent rows that its deletion may take several transactions.

    The first transaction sets `deletion_started_at`. After that, the row cannot be changed. It can only be deleted. The document does not
    contain `deletion_started_at`, so the first transaction records no event of the row. The last transaction records the event of the
    deletion.
    """

    deletion_started_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True

    @property
    def is_being_deleted(self) -> bool:
        """Whether the deletion of the row has begun. If so, no new row can refer to it, and no user can log in through it."""
        return self.deletion_started_at is not None
