"""Pagination with the parameters `page` and `per_page`, for lists of actions and of synchronizations. The response includes the total."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http import QueryDict

from foundation.api.operations import WHOLE, Parameter, Schema
from foundation.api.paging import LARGEST_PAGE, PAGE_SIZE
from foundation.api.queries import LARGEST_NUMBER, Projection, number_of, projection_of

PAGE_PARAMETERS = (
    Parameter("page", {**WHOLE, "minimum": 0, "maximum": LARGEST_NUMBER, "default": 0}, "Page, from 0."),
    Parameter("per_page", {**WHOLE, "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE_SIZE}, "Items per page."),
)


def page_schema(key: str, item: Schema) -> Schema:
    """Return the OpenAPI schema of a page with these items."""
    numbers: Schema = dict.fromkeys(("total", "page", "per_page"), WHOLE)
    properties = {**numbers, key: {"type": "array", "items": item}}
    return {"type": "object", "required": list(properties), "properties": properties}


def answer_page(
    rows: QuerySet[Any], query: QueryDict, key: str, render: Callable[[Any], dict[str, Any]], *, fields: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """Return one page. Raises `Refusal` for invalid parameters.

    `fields` are the names of members that a request may select; each item contains the selected members. The query uses an offset, so pass
    only rows of lists that stay short.
    """
    project = Projection() if fields is None else projection_of(query, fields)
    page = number_of(query, "page", minimum=0) or 0
    size = number_of(query, "per_page", minimum=1, maximum=LARGEST_PAGE) or PAGE_SIZE
    found = [project(render(row)) for row in rows[page * size : (page + 1) * size]]
    return {"total": rows.count(), "page": page, "per_page": size, key: found}
