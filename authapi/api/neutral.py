"""Endpoints for features that the service does not have. They return empty or fixed values. They accept writes of these values, and refuse
all other writes.

The endpoints are built from the rows of `authapi.api.neutral_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.neutral_table import ABSENT, LISTS, SETTINGS, Absent, EmptyList, Form, Owner, Setting
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, ListOf, Switch, Text
from foundation.api.list_schemas import LIST_FORMS, TAKE_FORM
from foundation.api.operations import Operation, Parameter, Route, Schema
from foundation.api.paging import Listing, answer_list
from foundation.api.refusals import Refusal, invalid_body, not_supported
from identity.models import Connection, Organization
from identity.services.failures import NotFound

_ACTIONS = {"get": "list", "patch": "partial_update", "put": "update", "post": "create"}
# The first word of the id of an operation, by HTTP method.
_ACTS = {"patch": "update", "put": "set", "post": "create"}
_TYPES: dict[type, str] = {bool: "boolean", int: "integer", str: "string"}


class NeutralEndpoint(Endpoint):
    """Base class of the endpoints. `refusal` is the reason for refusing other values; error texts contain it."""

    refusal: ClassVar[str] = ""
    owner: ClassVar[Owner | None] = None

    def require_owner(self, place: Mapping[str, str]) -> None:
        """Raise 404 if the `id` of the path is not a row of the tenant."""
        if self.owner is Owner.ORGANIZATION and not Organization.objects.filter(pk=place["id"]).exists():
            raise NotFound("No organization found by that id or name.")
        if self.owner is Owner.CONNECTION and not Connection.objects.filter(pk=place["id"]).exists():
            raise Refusal(404, "The connection does not exist.", "inexistent_connection")

    def refuse(self) -> Refusal:
        """Return the refusal of a write that needs an unsupported feature."""
        return not_supported(f"Not supported: {self.refusal}")


class SettingEndpoint(NeutralEndpoint):
    """A document whose members each have one fixed value."""

    value: ClassVar[Mapping[str, Any]] = {}
    body: ClassVar[type[Closed]] = Closed

    def list(self, request: Request, **place: str) -> Response:
        return Response(self.value)

    def partial_update(self, request: Request, **place: str) -> Response:
        """Accept members with their fixed values. Refuse every other value and member."""
        if not isinstance(request.data, dict):
            raise invalid_body("Expected type object", "body")
        if request.data.keys() - self.value.keys():
            raise self.refuse()
        if any(value != self.value[name] for name, value in self.body_of(request, self.body).items()):
            raise self.refuse()
        return Response(self.value)

    update = partial_update


class EmptyListEndpoint(NeutralEndpoint):
    """A list that is always empty."""

    key: ClassVar[str] = ""
    form: ClassVar[Form] = Form.LISTED

    def list(self, request: Request, **place: str) -> Response:
        self.require_owner(place)
        if self.form is Form.ARRAY:
            return Response([])
        if self.form is Form.OBJECT:
            return Response({self.key: []})
        query = request.query_params.copy()
        # Only items would show which names in `fields` are valid, and this list has no items. So the names are not checked.
        query.pop("fields", None)
        # These lists have no table. `answer_list` returns a list in the form that the parameters request, but needs a query, so it gets an
        # empty query on another table.
        return Response(answer_list(Organization.objects.none(), query, Listing(self.key, (), only_take=self.form is Form.TAKEN), dict))

    def create(self, request: Request, **place: str) -> Response:
        self.require_owner(place)
        raise self.refuse()


class AbsentEndpoint(NeutralEndpoint):
    """A resource that never exists."""

    def list(self, request: Request, **place: str) -> Response:
        self.require_owner(place)
        raise Refusal(404, f"Not found: {self.refusal}", "operation_not_supported")

    def create(self, request: Request, **place: str) -> Response:
        self.require_owner(place)
        raise self.refuse()

    partial_update = update = create


def neutral_routes() -> tuple[Route, ...]:
    """Return the routes of all rows of `authapi.api.neutral_table`."""
    return (*map(_setting_route, SETTINGS), *map(_list_route, LISTS), *map(_absent_route, ABSENT))


def _setting_route(row: Setting) -> Route:
    words = row.name.replace("_", " ")
    schema = _schema_of(row.value)
    body = _body_of(row) if row.value else None
    operations = {
        "list": Operation(f"get_{row.name}", f"Read {words}; the value is fixed", (f"read:{row.noun}",), 200, schema),
        _ACTIONS[row.write]: Operation(
            f"update_{row.name}",
            f"Write {words}; only the fixed value is accepted",
            (f"update:{row.noun}",),
            200,
            schema,
            body,
        ),
    }
    members = {"value": row.value, "body": body or Closed}
    return _route(row, SettingEndpoint, operations, ("get", row.write), members)


def _list_route(row: EmptyList) -> Route:
    words = row.name.replace("_", " ")
    missing = (404,) if row.owner else ()
    operations = {
        "list": Operation(
            f"list_{row.name}",
            f"List {words}; always empty",
            (f"read:{row.noun}",),
            200,
            _list_schema(row),
            parameters=_PARAMETERS.get(row.form, ()),
            refuses=missing,
        )
    }
    if row.creates:
        operations["create"] = _refused(row, "create", refuses=missing)
    methods = ("get", *(("post",) if row.creates else ()))
    return _route(row, EmptyListEndpoint, operations, methods, {"key": row.key, "form": row.form, "owner": row.owner})


def _absent_route(row: Absent) -> Route:
    words = row.name.replace("_", " ")
    operations = {}
    if row.is_read:
        operations["list"] = Operation(f"get_{row.name}", f"Read {words}; the answer is always 404", (f"read:{row.noun}",), 404)
    for method, verb in row.writes.items():
        operations[_ACTIONS[method]] = _refused(row, _ACTS[method], verb, (404,) if row.owner else ())
    return _route(row, AbsentEndpoint, operations, (*(("get",) if row.is_read else ()), *row.writes), {"owner": row.owner})


def _refused(row: EmptyList | Absent, act: str, verb: str = "create", refuses: tuple[int, ...] = ()) -> Operation:
    """Return an operation that always refuses with 400."""
    return Operation(f"{act}_{row.name}", f"Refused. {row.refusal}", (f"{verb}:{row.noun}",), 400, refuses=refuses)


def _route(
    row: Setting | EmptyList | Absent,
    base: type[NeutralEndpoint],
    operations: dict[str, Operation],
    methods: tuple[str, ...],
    members: dict[str, Any],
) -> Route:
    name = f"{_camel(row.name)}Endpoint"
    endpoint = type(name, (base,), {"__doc__": row.refusal, "operations": operations, "refusal": row.refusal, **members})
    return Route(row.path, endpoint, {method: _ACTIONS[method] for method in methods})


def _body_of(row: Setting) -> type[Closed]:
    """Return a request body that has a field for each member of the value, and refuses other members."""
    return type(body_name(row), (Closed,), {name: _field_of(value) for name, value in row.value.items()})


def _field_of(value: Any) -> serializers.Field[Any, Any, Any, Any]:
    if isinstance(value, bool):
        return Switch(required=False)
    if isinstance(value, int):
        return serializers.IntegerField(required=False)
    return ListOf(required=False, child=Text()) if isinstance(value, list) else Text(required=False)


def _schema_of(value: Mapping[str, Any]) -> Schema:
    """Return a schema that only `value` matches."""
    properties = {
        name: {"type": "array", "items": {}, "maxItems": 0} if member == [] else {"type": _TYPES[type(member)], "enum": [member]}
        for name, member in value.items()
    }
    return (
        {"type": "object", "required": list(properties), "properties": properties, "additionalProperties": False} if properties else _EMPTY
    )


def _list_schema(row: EmptyList) -> Schema:
    empty: Schema = {"type": "array", "items": {}, "maxItems": 0}
    held: Schema = {"type": "object", "required": [row.key], "properties": {row.key: empty}}
    return {Form.ARRAY: empty, Form.LISTED: {"oneOf": [empty, held]}}.get(row.form, held)


def body_name(row: Setting) -> str:
    """Return the name of the request body in the OpenAPI document."""
    return f"{_camel(row.name)}Neutral"


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


_EMPTY: Schema = {"type": "object", "maxProperties": 0}
_PARAMETERS: dict[Form, tuple[Parameter, ...]] = {Form.LISTED: LIST_FORMS, Form.TAKEN: TAKE_FORM}
