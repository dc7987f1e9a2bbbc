"""Keyset pagination for lists of admin classes, so that lists stay fast in tables of any length. See `foundation.admin.keyset_list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.core.exceptions import ValidationError
from django.db import models
from django.http import HttpRequest

from foundation.admin.keyset_list import FOUND, KeysetChangeList, is_served_by_index
from identity.admin.scope import tenant_in_scope, tenant_path


class PagedByKeys:
    """Lists rows in the order of an index, in pages that start after a key.

    `grows`: false for small tables whose rows are added one by one. Lists of such tables can be sorted by any column and have numbered
    pages. `indexed_filters`: filters for which an index returns the rows of one tenant in the order of the list. Other filters read rows
    one by one. `lists_only_found`: for rows that staff normally see on the page of another row. The list is empty until staff search in it.
    `is_short_lived`: rows expire soon. The list of a tenant sorts and shows at most `FOUND` of the tenant's rows.
    """

    grows: bool = True
    indexed_filters: tuple[str, ...] = ()
    is_short_lived: bool = False
    lists_only_found: bool = False

    if TYPE_CHECKING:
        model: Any

        @property
        def tenant_column(self) -> str | None: ...
        def is_bound(self, request: HttpRequest) -> bool: ...
        def get_search_fields(self, request: HttpRequest) -> Any: ...

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        if self.grows:
            return KeysetChangeList
        return super().get_changelist(request, **kwargs)  # type: ignore[misc, no-any-return]  # Django's class comes after this one

    def get_sortable_by(self, request: HttpRequest) -> Any:
        return () if self.grows else super().get_sortable_by(request)  # type: ignore[misc]

    def get_ordering(self, request: HttpRequest) -> Any:
        """Order by tenant first if the list has several tenants, because the index of the list starts with the tenant."""
        names: tuple[str, ...] = tuple(super().get_ordering(request) or self.model._meta.ordering or ("-pk",))  # type: ignore[misc]
        if not self.grows or self.is_bound(request) or names[0].lstrip("-") in ("pk", self.model._meta.pk.name):
            return names
        falling = {name.startswith("-") for name in names}
        own = self.tenant_column
        if own is None or "__" in own or len(falling) > 1:
            return ("-pk",)
        return (f"-{own}" if falling == {True} else own, *names)

    def rows_to_list(self, request: HttpRequest, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Return the rows of the list before any filter."""
        if self.lists_only_found and not request.GET.get(SEARCH_VAR, "").strip():
            return rows.none()
        if self.is_short_lived and self.is_bound(request):
            return rows.filter(pk__in=rows.order_by().values("pk")[:FOUND])
        return rows

    def filters_by_index(self, request: HttpRequest) -> tuple[str, ...]:
        return self.indexed_filters if self.is_bound(request) else ()

    def found_by_index(self, request: HttpRequest, rows: models.QuerySet[Any], term: str) -> models.QuerySet[Any] | None:
        """Return the rows that an index finds for a search term; None if rows must be read one by one."""
        exact = [name.removesuffix("__exact") for name in self.get_search_fields(request) if name.endswith("__exact")]
        for name in exact:
            if is_served_by_index(self.model, name, in_tenant=self.is_bound(request)):
                found = self._exactly(rows, name, term, tenant=tenant_in_scope(request))
                if found is not None:
                    return found
        has_more = len(exact) < len(self.get_search_fields(request))
        is_served = all(is_served_by_index(self.model, name, in_tenant=self.is_bound(request)) for name in exact)
        return rows.none() if is_served and not has_more else None

    def _exactly(self, rows: models.QuerySet[Any], name: str, term: str, *, tenant: str | None) -> models.QuerySet[Any] | None:
        column: Any = self.model
        for part in name.split("__"):
            owner, field = column, column._meta.pk if part == "pk" else column._meta.get_field(part)
            column = field.related_model
        if tenant is not None and owner is not self.model and (own := tenant_path(owner)) is not None:
            # With this filter, an index that begins with the tenant finds the referenced row.
            rows = rows.filter(**{f"{name.rpartition('__')[0]}__{own}": tenant})
        try:
            field.to_python(term)
        except ValidationError:  # The column cannot store this value, so no row has it.
            return None
        found = rows.filter(**{name: term})
        return found if found.order_by().values("pk")[:1].exists() else None
