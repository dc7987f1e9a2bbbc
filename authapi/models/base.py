"""The base of the models of this app: a tenant, and managers that require a tenant.

Changes of rows of these models cause no events, so bulk writes are allowed.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeVar

from django.db import models

from foundation.tenancy import TenantRequired, current_tenant
from identity.models.base import TenantOwned

Row = TypeVar("Row", bound=models.Model, covariant=True)


class UnrecordedManager(models.Manager[Row]):
    """Reads rows of the current tenant, and raises `TenantRequired` if there is no current tenant. Bulk writes are allowed."""

    def get_queryset(self) -> models.QuerySet[Row]:
        tenant = current_tenant()
        if tenant is None:
            raise TenantRequired(f"{self.model.__name__}: {TenantRequired.__doc__}")
        return self.of(tenant)

    def of(self, tenant_id: str) -> models.QuerySet[Row]:
        """Return the rows of the named tenant, even if another tenant is the current tenant."""
        return models.QuerySet(self.model, using=self._db).filter(tenant_id=tenant_id)


class UnrecordedOwned(TenantOwned):
    """A row that belongs to one tenant, such as a client, a key or a token. Changes of the row cause no events."""

    objects: ClassVar[UnrecordedManager[Self]] = UnrecordedManager()  # type: ignore[assignment]
    all_tenants: ClassVar[models.Manager[Self]] = models.Manager()  # type: ignore[assignment]

    class Meta(TenantOwned.Meta):
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        # The OAuth toolkit creates rows without a tenant. Such a row gets the current tenant.
        if not self.tenant_id:
            self.tenant_id = current_tenant() or ""
        if not self.tenant_id:
            raise TenantRequired(f"{type(self).__name__}: {TenantRequired.__doc__}")
        super().save(*args, **kwargs)
