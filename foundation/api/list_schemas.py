"""OpenAPI schemas of lists: the query parameters, and the three forms of a list (see `list_of`)."""

from __future__ import annotations

from foundation.api.operations import WHOLE, Parameter, Schema
from foundation.api.queries import LARGEST_NUMBER

PROJECTION = (
    Parameter("fields", {"type": "string"}, "Names of fields, separated by commas."),
    Parameter("include_fields", {"type": "boolean", "default": True}, "True: return only `fields`. False: return all other fields."),
)


def take_form(largest: int = 100) -> tuple[Parameter, ...]:
    """Return the parameters of the checkpoint form. `largest` is the maximum number of items in a response."""
    size: Schema = {"type": "integer", "minimum": 1, "maximum": largest, "default": 50}
    return (
        Parameter("from", {"type": "string"}, "The value of `next` in the previous response."),
        Parameter("take", size, "Maximum number of items. Selects pages by checkpoint: `from` requests the next items."),
        *PROJECTION,
    )


TAKE_FORM = take_form()
_PAGE_FORM = (
    Parameter(
        "page", {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER, "default": 0}, "Number of the page; the first page is 0."
    ),
    Parameter(
        "include_totals", {"type": "boolean", "default": False}, "True: return an object with the page and the totals, instead of an array."
    ),
)
_SIZE: Schema = {"type": "integer", "maximum": 100, "default": 50}
LIST_FORMS = (*_PAGE_FORM, Parameter("per_page", {**_SIZE, "minimum": 1}, "Items per page."), *TAKE_FORM)
COUNTING_LIST_FORMS = (*_PAGE_FORM, Parameter("per_page", {**_SIZE, "minimum": 0}, "Items per page. 0: only the total."), *TAKE_FORM)


def sort_parameter(*fields: str) -> Parameter:
    """Return the parameter `sort` of a list that can be sorted by these fields."""
    ways = [f"{field}:{direction}" for field in fields for direction in (1, -1)]
    meaning = "A field, then `:1` for ascending or `:-1` for descending order."
    if "created_at" in fields:
        meaning += " The checkpoint form accepts only `created_at`."
    return Parameter("sort", {"type": "string", "enum": ways}, meaning)


def fields_of(schema: Schema) -> tuple[str, ...]:
    """Return the names that the parameter `fields` accepts in a list of objects with this schema."""
    return tuple(schema["properties"])


def reference(component: str) -> Schema:
    """Return a reference to a named schema of the OpenAPI document."""
    return {"$ref": f"#/components/schemas/{component}"}


def taken_list(key: str, item: Schema) -> Schema:
    """Return the schema of the checkpoint form. The schema allows no further members, so that a page with totals does not match this
    schema."""
    properties: Schema = {key: {"type": "array", "items": item}, "next": {"type": "string", "description": "Absent in the last response."}}
    return {"type": "object", "required": [key], "properties": properties, "additionalProperties": False}


def list_of(key: str, item: Schema) -> Schema:
    """Return the schema of a list in its three forms: a bare array, a page with totals, or the checkpoint form."""
    array: Schema = {"type": "array", "items": item}
    numbers: Schema = dict.fromkeys(("start", "limit", "length", "total"), WHOLE)
    page: Schema = {"type": "object", "required": ["start", "limit", "total", key], "properties": {**numbers, key: array}}
    return {"oneOf": [array, page, taken_list(key, item)]}
