"""What every tenant-owned, recorded row shares: its managers, and writes that are one transaction with their signals."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from django.db import models, transaction

from foundation.database.transactions import lock_rows
from foundation.tenancy import AllTenantsManager, TenantManager


class TenantOwned(models.Model):
    """A row of one tenant. `objects` sees the current tenant only; `all_tenants` is for code that says why."""

    tenant = models.ForeignKey("identity.Tenant", on_delete=models.PROTECT, related_name="+")

    objects: ClassVar[TenantManager[Self]] = TenantManager()
    all_tenants: ClassVar[AllTenantsManager[Self]] = AllTenantsManager()

    class Meta:
        abstract = True
        # Relations and foreign-key checks read through these; both refuse writes that send no signal.
        default_manager_name = "all_tenants"
        base_manager_name = "all_tenants"


class RecordedModel(TenantOwned):
    """A row whose changes become events: saved and deleted in one transaction with its signals, its root locked first."""

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
        """Return model and key of the document this row belongs to; the row itself unless a subclass says otherwise."""
        return type(self), self.pk

    def _lock_root(self) -> None:
        model, key = self.root()
        if key is not None and not (self._state.adding and model is type(self)):
            lock_rows(model, [key])


class DeletedInParts(models.Model):
    """A row with so much hanging on it that deleting it may take several transactions.

    The mark is set by the first of them, and from then on nothing about the row changes but that it goes. It is no
    part of the document: subscribers learn of the deletion from its own event, the last one.
    """

    deletion_started_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True

    @property
    def is_being_deleted(self) -> bool:
        """Whether it is on its way out: nothing is attached to it, and nobody signs in through it."""
        return self.deletion_started_at is not None
