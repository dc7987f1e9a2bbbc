"""The OpenAPI description of an endpoint, generated from its operations."""

from __future__ import annotations

from typing import Any, cast

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from foundation.api.fields import Closed, JsonObject
from foundation.api.list_schemas import reference
from foundation.api.operations import Operation, Schema
from foundation.api.paths import id_pattern
from foundation.api.snapshots import CURSOR_HEADER

BEARER = "bearer"
CLIENT_CREDENTIALS = "client_credentials"
_STATUSES_OF_ALL = (400, 401, 403, 429)

ERROR: Schema = {
    "type": "object",
    "description": "The body of every error.",
    "required": ["statusCode", "error", "message"],
    "properties": {
        "statusCode": {"type": "integer"},
        "error": {"type": "string", "description": "The reason phrase of the status."},
        "message": {"type": "string"},
        "errorCode": {"type": "string", "description": "A code for programs. Absent if the error has no code."},
    },
}
_DESCRIPTIONS = {
    200: "Success.",
    201: "Created.",
    202: "Accepted.",
    204: "Done; no content.",
    400: "Invalid request.",
    401: "Invalid token, invalid signature, or a client that is not global.",
    403: "Insufficient scope.",
    404: "Not found.",
    409: "The object already exists, is being deleted, or is in a state that does not allow the operation.",
    413: "Too large.",
    429: "Too many requests. See the X-RateLimit headers.",
}
RATE_HEADERS: Schema = {
    name: {"schema": {"type": "integer"}, "description": text}
    for name, text in {
        "X-RateLimit-Limit": "Number of requests allowed in one window.",
        "X-RateLimit-Remaining": "Number of requests left in the current window.",
        "X-RateLimit-Reset": "Start of the next window, in Unix seconds.",
    }.items()
}


def cursor_header(kind: str) -> Schema:
    """Return the description of the response header that contains the cursor of a list."""
    text = (
        "Only on the first page: a cursor of the event stream, taken before the page was read. "
        f"`GET /events?from=<cursor>` continues this list with its `{kind}` events."
    )
    return {CURSOR_HEADER: {"schema": {"type": "string"}, "description": text}}


def error_responses(*statuses: int) -> dict[str, Schema]:
    """Return the descriptions of error responses, as in an operation's `responses`."""
    content = {"application/json": {"schema": reference("Error")}}
    return {
        str(status): {"description": _DESCRIPTIONS.get(status, "Refused."), "headers": RATE_HEADERS, "content": content}
        for status in statuses
    }


def security_of(*scopes: str) -> list[dict[str, list[str]]]:
    """Return the two security schemes of an operation.

    A token needs one element of `scopes`. If an element contains several scopes, separated by spaces, the token needs all of them.
    """
    return [{BEARER: []}, *({CLIENT_CREDENTIALS: together.split()} for together in scopes)]


class OperationSchema(AutoSchema):
    """Reads everything from the `Operation` that the endpoint declares."""

    @property
    def operation(self) -> Operation:
        # Every described view is an `Endpoint`.
        view = cast("Any", self.view)
        return cast("Operation", view.operations[view.action])

    def get_operation_id(self) -> str:
        return self.operation.id

    def get_summary(self) -> str:
        return self.operation.summary

    def get_description(self) -> str:  # type: ignore[override]  # as in the base class
        return ""

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/v2/").partition("/")[0]]

    def get_auth(self) -> list[dict[str, Any]]:
        return security_of(*self.operation.scopes)

    def get_extensions(self) -> Schema:
        return {"x-release-lifecycle": str(self.operation.lifecycle)}

    def get_override_parameters(self) -> list[Any]:
        return [
            # An empty parameter counts as absent, so a required parameter must not be empty.
            OpenApiParameter(
                item.name, item.schema, description=item.description, required=item.is_required, allow_blank=not item.is_required
            )
            for item in self.operation.parameters
        ]

    def _is_list_view(self, serializer: Any = None) -> bool:
        # If an action is called `list`, the generator describes the response as an array of our schema. But our schema already is the
        # array.
        return False

    def _resolve_path_parameters(self, variables: Any) -> list[Schema]:
        parameters: list[Schema] = super()._resolve_path_parameters(variables)  # type: ignore[no-untyped-call]
        own = cast("Any", self.view).path_schemas
        for parameter in parameters:
            pattern = id_pattern(self.path, parameter["name"])
            # Do not describe the pattern of the route: it excludes slashes, but clients can send an id with an encoded slash.
            parameter["schema"] = {
                "type": "string",
                "minLength": 1,
                **({"pattern": pattern} if pattern else {}),
                **own.get(parameter["name"], {}),
            }
        return parameters

    def get_request_serializer(self) -> Any:
        operation = self.operation
        if operation.body_schema is not None:
            return {"application/json": operation.body_schema}
        return operation.body(many=True) if operation.body is not None and operation.is_body_list else operation.body

    def _get_request_body(self, direction: Any = "request") -> Any:
        method = self.method
        if method == "DELETE" and self.operation.body is not None:
            # The generator omits bodies of DELETE, but client libraries send them.
            self.method = "POST"
        try:
            body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        finally:
            self.method = method
        if self.operation.is_body_list:
            # A form has named members and cannot be a list.
            body["content"].pop("application/x-www-form-urlencoded", None)
            body["content"]["application/json"]["schema"]["minItems"] = 1
        return body

    def get_response_serializers(self) -> Any:
        operation = self.operation
        # A method without content is described by None.
        answers = {operation.status: operation.answer}
        if operation.repeated_status is not None:
            answers[operation.repeated_status] = None
        return {status: OpenApiResponse(answer, description=_DESCRIPTIONS[status]) for status, answer in answers.items()}

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: Any = False) -> Schema:  # noqa: FBT002  (as in the base class)
        schema: Schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        return schema | field.bounds if isinstance(field, JsonObject) else schema

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Schema:
        schema: Schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        return {**schema, "additionalProperties": False} if isinstance(serializer, Closed) else schema

    def _get_response_bodies(self, direction: Any = "response") -> Schema:
        bodies: Schema = super()._get_response_bodies(direction)
        for body in bodies.values():
            body["headers"] = RATE_HEADERS | (cursor_header(self.operation.snapshot_of) if self.operation.snapshot_of else {})
        conflicts = (413,) if self.operation.body is not None else ()
        if self.method != "GET":
            # 409: the deletion of the target may have begun, or another request may delete a referenced row at the same time.
            conflicts = (409, *conflicts)
        return bodies | error_responses(*sorted({*_STATUSES_OF_ALL, *self.operation.refuses, *conflicts}))
