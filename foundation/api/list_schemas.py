"""The OpenAPI description of lists: their parameters and three forms."""

from __future__ import annotations

from foundation.api.operations import WHOLE, Parameter, Schema
from foundation.api.queries import LARGEST_NUMBER

PROJECTION = (
    Parameter("fields", {"type": "string"}, "Comma list of fields."),
    Parameter("include_fields", {"type": "boolean", "default": True}, "Keep these fields, or drop them."),
)


def take_form(largest: int = 100) -> tuple[Parameter, ...]:
    """Return the parameters of the checkpoint form."""
    size: Schema = {"type": "integer", "minimum": 1, "maximum": largest, "default": 50}
    return (
        Parameter("from", {"type": "string"}, "Checkpoint: `next` of the answer before."),
        Parameter("take", size, "Items per answer; asks for the checkpoint form."),
        *PROJECTION,
    )


TAKE_FORM = take_form()
_PAGE_FORM = (
    Parameter("page", {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER, "default": 0}, "Page, from 0."),
    Parameter("include_totals", {"type": "boolean", "default": False}, "Ask for the page form with totals."),
)
_SIZE: Schema = {"type": "integer", "maximum": 100, "default": 50}
LIST_FORMS = (*_PAGE_FORM, Parameter("per_page", {**_SIZE, "minimum": 1}, "Items per page."), *TAKE_FORM)
COUNTING_LIST_FORMS = (*_PAGE_FORM, Parameter("per_page", {**_SIZE, "minimum": 0}, "Items per page; 0 only counts."), *TAKE_FORM)


def sort_parameter(*fields: str) -> Parameter:
    """Return `sort` for a list that can be sorted by these fields."""
    ways = [f"{field}:{direction}" for field in fields for direction in (1, -1)]
    return Parameter("sort", {"type": "string", "enum": ways}, "A field and its direction. The checkpoint form: `created_at` only.")


def fields_of(schema: Schema) -> tuple[str, ...]:
    """Return the names that `fields` of a list of these objects accepts."""
    return tuple(schema["properties"])


def reference(component: str) -> Schema:
    """Return a reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{component}"}


def taken_list(key: str, item: Schema) -> Schema:
    """Return the schema of the checkpoint form; closed, so that a page with totals does not match it."""
    properties: Schema = {key: {"type": "array", "items": item}, "next": {"type": "string", "description": "Left out at the end."}}
    return {"type": "object", "required": [key], "properties": properties, "additionalProperties": False}


def list_of(key: str, item: Schema) -> Schema:
    """Return the three forms: a bare array, a page with totals, a checkpoint."""
    array: Schema = {"type": "array", "items": item}
    numbers: Schema = dict.fromkeys(("start", "limit", "length", "total"), WHOLE)
    page: Schema = {"type": "object", "required": ["start", "limit", "total", key], "properties": {**numbers, key: array}}
    return {"oneOf": [array, page, taken_list(key, item)]}
