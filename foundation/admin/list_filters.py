"""List filters that stay within the tenant in scope, at a cost that does not grow with the list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.admin.filters import AllValuesFieldListFilter, BooleanFieldListFilter, FieldListFilter, RelatedFieldListFilter
from django.contrib.admin.options import BaseModelAdmin
from django.contrib.admin.utils import get_fields_from_path
from django.db import models
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from foundation.admin.field_labels import SentenceChoicesFilter

CHOICES_SHOWN = 200
_ROWS_LOOKED_AT = 1_000
# The label of the choice that selects rows without a value. Django's label is a dash, which does not explain the choice.
_NO_VALUE = SafeString("Not set")
_COMPARISONS = frozenset({"exact", "isempty", "isnull", "in", "gt", "gte", "lt", "lte"})


class ScopedRelatedFilter(RelatedFieldListFilter):
    """A filter by a relation. Offers only rows that the account may see."""

    def __init__(self, field: Any, request: HttpRequest, params: Any, model: type[models.Model], model_admin: Any, field_path: str) -> None:
        super().__init__(field, request, params, model, model_admin, field_path)
        self.empty_value_display = _NO_VALUE

    def field_choices(self, field: Any, request: HttpRequest, model_admin: BaseModelAdmin[Any]) -> Any:
        rows = model_admin.scoped_choices(request, field.remote_field.model)  # type: ignore[attr-defined]
        return [(row.pk, str(row)) for row in rows[:CHOICES_SHOWN]]


class RecentValuesFilter(AllValuesFieldListFilter):
    """A filter by a plain value. Offers only the values of the first rows, because Django's own filter would scan every row."""

    def __init__(self, field: Any, request: HttpRequest, params: Any, model: type[models.Model], model_admin: Any, field_path: str) -> None:
        super().__init__(field, request, params, model, model_admin, field_path)
        self.empty_value_display = _NO_VALUE
        # The values come from the first rows of the list, in an order that an index provides.
        rows = model_admin.get_queryset(request).select_related(None).order_by(*model_admin.get_ordering(request))
        newest = rows.values_list(field.name, flat=True)[:_ROWS_LOOKED_AT]
        self.lookup_choices = sorted(set(newest), key=lambda value: (value is None, value))  # type: ignore[assignment]  # it is only iterated over


class YesOrNoFilter(BooleanFieldListFilter):
    """A filter by a nullable boolean column. The choice "No" includes null."""

    def choices(self, changelist: Any) -> Any:
        return (choice for choice in super().choices(changelist) if choice["display"] != _("Unknown"))

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any] | None:
        if self.lookup_val == "0":
            return queryset.exclude(**{self.field_path: True})
        return super().queryset(request, queryset)


def worded(base: type[FieldListFilter], words: Mapping[str, str]) -> type[FieldListFilter]:
    """Return the filter `base` with other names for its choices. `words` maps each name in `base` to its new name."""

    class Worded(base):  # type: ignore[misc, valid-type]  # a class of the caller
        def choices(self, changelist: Any) -> Any:
            return ({**choice, "display": words.get(str(choice["display"]), choice["display"])} for choice in super().choices(changelist))

    return Worded


def is_offered(model: type[models.Model], lookup: str, list_filter: Iterable[Any]) -> bool:
    """Tell whether the lookup in a URL is an allowed comparison of a field in `list_filter`.

    Patterns, parts of dates and other transforms are refused: no index serves them, and some fail in the database.
    """
    for item in list_filter:
        path = item[0] if isinstance(item, (list, tuple)) else item
        if not isinstance(path, str) or not f"{lookup}__".startswith(f"{path}__"):
            continue
        parts = lookup[len(path) :].split("__")[1:]
        target = getattr(get_fields_from_path(model, path)[-1], "target_field", None)
        if parts and target is not None and parts[0] == target.name:
            parts = parts[1:]
        if not parts or (len(parts) == 1 and parts[0] in _COMPARISONS):
            return True
    return False


def scoped_filter(model: type[models.Model], item: Any) -> Any:
    """Return the entry of `list_filter` as a filter that stays within the tenant and does not scan the whole list."""
    name = item[0] if isinstance(item, (list, tuple)) else item
    if not isinstance(name, str) or "__" in name:
        return item
    field: Any = model._meta.get_field(name)
    given = item[1] if isinstance(item, (list, tuple)) else None
    if field.is_relation:
        return (name, given if given is not None and issubclass(given, ScopedRelatedFilter) else ScopedRelatedFilter)
    if field.flatchoices and given is None:
        return (name, SentenceChoicesFilter)
    is_small = isinstance(field, (models.BooleanField, models.DateField))
    return item if given is not None or is_small else (name, RecentValuesFilter)
