"""Finds the rows of a tenant in the tables of all apps, and the order in which a purge deletes them.

When an app is ready, it registers its tables once with `cover`. The path from a row to its tenant comes from the models: a `tenant_id`
column, or a relation to a row that has such a column. A model without such a path must be named as a model of the platform, so that no new
table is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from graphlib import TopologicalSorter

from django.apps import apps
from django.db import models


class Stage(IntEnum):
    """Order of deletion. The head of a log is first: without the head no event can be recorded or numbered."""

    FIRST = 0
    ROWS = 1
    LAST = 2


@dataclass(frozen=True)
class OwnedTable:
    """A table with rows of tenants; `path` is the lookup from a row to the tenant's id."""

    model: type[models.Model]
    path: str
    stage: Stage = Stage.ROWS
    is_credential: bool = False

    def rows(self, tenant_id: str) -> models.QuerySet[models.Model]:
        return models.QuerySet(self.model).filter(**{self.path: tenant_id})


@dataclass
class Coverage:
    """The tables that apps have registered."""

    tables: list[OwnedTable] = field(default_factory=list)
    platform_wide: set[type[models.Model]] = field(default_factory=set)
    outliving: set[type[models.Model]] = field(default_factory=set)

    @cached_property
    def ordered(self) -> tuple[OwnedTable, ...]:
        """The tables in the order of a purge: by stage, then referring rows before the rows that they refer to."""
        by_model = {table.model: table for table in self.tables}
        order = TopologicalSorter({model: _referring(model) & by_model.keys() for model in by_model}).static_order()
        return tuple(sorted((by_model[model] for model in order), key=lambda table: table.stage))


_coverage = Coverage()


def cover(
    app_label: str,
    *,
    are_credentials: bool = False,
    first: Iterable[str] = (),
    last: Iterable[str] = (),
    platform_wide: Iterable[str] = (),
    outliving: Iterable[str] = (),
) -> None:
    """Register the tables of an app for purges. Models are given by the names of their classes.

    Credentials are deleted as soon as the tenant's users are deleted, before the deletion waits for deliveries and for the retention of the
    log. Rows of `outliving` models stay until their own retention ends.
    """
    stages = {**dict.fromkeys(first, Stage.FIRST), **dict.fromkeys(last, Stage.LAST)}
    exempt = set(platform_wide)
    for model in apps.get_app_config(app_label).get_models():
        path = path_to_tenant(model)
        if model.__name__ in exempt:
            _coverage.platform_wide.add(model)
        elif model.__name__ in outliving:
            _coverage.outliving.add(model)
        elif path is not None and all(table.model is not model for table in _coverage.tables):
            _coverage.tables.append(OwnedTable(model, path, stages.get(model.__name__, Stage.ROWS), are_credentials))
    _coverage.__dict__.pop("ordered", None)


def coverage() -> Coverage:
    """Return the registered tables."""
    return _coverage


def path_to_tenant(model: type[models.Model], seen: frozenset[type[models.Model]] = frozenset()) -> str | None:
    """Return the lookup from a row to its tenant's id, or None if the model has no path to a tenant."""
    for row_field in model._meta.concrete_fields:
        if row_field.attname == "tenant_id":
            return "tenant_id"
    for row_field in _relations(model):
        related = row_field.related_model
        if isinstance(related, type) and related is not model and related not in seen:
            further = path_to_tenant(related, seen | {model})
            if further is not None:
                return f"{row_field.name}__{further}"
    return None


def _relations(model: type[models.Model]) -> Iterator[models.Field[object, object]]:
    yield from (row_field for row_field in model._meta.concrete_fields if row_field.is_relation)


def _referring(model: type[models.Model]) -> set[type[models.Model]]:
    """Return the models that have foreign keys to this model. Their rows must be deleted first. Ignores keys that deletions set to null."""
    found: set[type[models.Model]] = set()
    # Django hides relations without a reverse name, but their rows refer to the model, too.
    for relation in model._meta.get_fields(include_hidden=True):
        other = relation.related_model
        points_here = relation.auto_created and not relation.concrete and other is not model
        if points_here and isinstance(other, type) and getattr(relation, "on_delete", None) is not models.SET_NULL:
            found.add(other)
    return found
