"""Telling of a row that is met in a list whether it is one of those that are asked for."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import BooleanField, OuterRef, QuerySet, Subquery, Value
from django.db.models.expressions import RawSQL


def judgement(narrowed: QuerySet[Any, Any]) -> Any:
    """Return whether a row that is met is one of these: by its own columns, or looked up by its key where others are asked, too."""
    query = narrowed.order_by().query
    if query.where and all(name == query.get_meta().db_table for name, count in query.alias_refcount.items() if count):
        # What Django has written, with its parameters beside it.
        sql, parameters = query.get_compiler(connection=connection).compile(query.where)
        return RawSQL(sql, parameters, BooleanField())  # noqa: S611  # nosec B611
    # One value and not whether one exists: that could be planned as a table of all rows that do.
    own = narrowed.order_by().filter(pk=OuterRef("pk")).annotate(found=Value(value=True)).values("found")
    return Subquery(own[:1])
