"""The users of a synchronization in the order of their keys. Each user has the same document as in an event."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Prefetch, QuerySet

from identity.documents import user_document
from identity.models import Connection, LinkedIdentity, User
from provisioning.links.rows import head_position
from provisioning.models import Action


@dataclass(frozen=True)
class LocalUser:
    """A user of this service: the key of its row (for pagination), its document, and a log position.

    The document is at least as new as the position.
    """

    key: int
    document: dict[str, Any]
    position: int

    @property
    def user_id(self) -> str:
        return str(self.document["user_id"])


@dataclass(frozen=True)
class People:
    """The users of a tenant; if `connection_names` is not empty, only the users of these connections."""

    tenant_id: str
    connection_names: Collection[str] = ()

    def count(self) -> int:
        return self._rows().count()

    def page(self, after: int, limit: int) -> list[LocalUser]:
        """Return the next `limit` users after the key `after`."""
        position = head_position(self.tenant_id)
        return [_local(row, position) for row in self._detailed().filter(pk__gt=after).order_by("pk")[:limit]]

    def now(self, key: int) -> LocalUser | None:
        """Return the current state of the user; None if the user was deleted."""
        position = head_position(self.tenant_id)
        row = self._detailed().filter(pk=key).first()
        return None if row is None else _local(row, position)

    def existing(self, user_ids: Collection[str]) -> set[str]:
        """Return the given ids that belong to existing users of this tenant, in any connection."""
        return set(User.objects.of(self.tenant_id).filter(user_id__in=user_ids).values_list("user_id", flat=True))

    def elsewhere(self, user_ids: Collection[str]) -> set[str]:
        """Return the given ids that also belong to users of other tenants with provisioning.

        Accounts with these ids may belong to those users.
        """
        others = Action.all_tenants.exclude(tenant_id=self.tenant_id).values_list("tenant_id", flat=True).distinct()
        users = User.all_tenants.filter(tenant_id__in=list(others), user_id__in=user_ids)
        return set(users.values_list("user_id", flat=True))

    def providers(self) -> frozenset[str]:
        """Return the prefixes of user ids of this tenant."""
        strategies = Connection.objects.of(self.tenant_id).values_list("strategy", flat=True).distinct()
        return frozenset(strategies) | {settings.DATABASE_STRATEGY}

    def _rows(self) -> QuerySet[User]:
        users = User.objects.of(self.tenant_id)
        return users.filter(connection__name__in=self.connection_names) if self.connection_names else users

    def _detailed(self) -> QuerySet[User]:
        linked = Prefetch("linked_identities", LinkedIdentity.objects.of(self.tenant_id).select_related("connection").order_by("pk"))
        return self._rows().select_related("connection").prefetch_related(linked)


def _local(row: User, position: int) -> LocalUser:
    return LocalUser(row.pk, user_document(row, list(row.linked_identities.all())), position)
