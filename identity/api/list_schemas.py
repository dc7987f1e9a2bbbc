"""What the OpenAPI document says about every list: its parameters and its three forms."""

from __future__ import annotations

from identity.api.operations import Parameter, Schema

_WHOLE: Schema = {"type": "integer"}
TAKE_FORM = (
    Parameter("from", {"type": "string"}, "Checkpoint: `next` of the answer before."),
    Parameter("take", {"type": "integer", "minimum": 1, "maximum": 100, "default": 50}, "Items per answer; asks for the checkpoint form."),
)
LIST_FORMS = (
    Parameter("page", {"type": "integer", "minimum": 0, "default": 0}, "Page, from 0."),
    Parameter("per_page", {"type": "integer", "minimum": 0, "maximum": 100, "default": 50}, "Items per page."),
    Parameter("include_totals", {"type": "boolean", "default": False}, "Ask for the page form with totals."),
    *TAKE_FORM,
)
PROJECTION = (
    Parameter("fields", {"type": "string"}, "Comma list of fields."),
    Parameter("include_fields", {"type": "boolean", "default": True}, "Keep these fields, or drop them."),
)


def reference(component: str) -> Schema:
    """Return a reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{component}"}


def taken_list(key: str, item: Schema) -> Schema:
    """Return the checkpoint form."""
    properties: Schema = {key: {"type": "array", "items": item}, "next": {"type": "string", "description": "Left out at the end."}}
    return {"type": "object", "required": [key], "properties": properties}


def list_of(key: str, item: Schema) -> Schema:
    """Return the three forms: a bare array, a page with totals, a checkpoint."""
    array: Schema = {"type": "array", "items": item}
    numbers: Schema = dict.fromkeys(("start", "limit", "length", "total"), _WHOLE)
    page: Schema = {"type": "object", "required": ["start", "limit", "total", key], "properties": {**numbers, key: array}}
    return {"oneOf": [array, page, taken_list(key, item)]}
