"""Connections: `/connections`, `/connections/{id}`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import PROJECTION
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import projection_of, text_of, texts_of
from foundation.api.refusals import Refusal
from foundation.timestamps import wire_time
from identity.api.connection_bodies import ConnectionToChange, ConnectionToCreate, cleared
from identity.api.connection_schemas import CONNECTION, CONNECTION_FIELDS, CONNECTIONS, DELETED, LIST_PARAMETERS
from identity.documents.connection import connection_resource
from identity.models import Connection
from identity.options.connection_options import options_problem
from identity.options.discovery import STRATEGIES, discovered_metadata
from identity.services import connections
from identity.services.failures import Invalid, NotFound

# Deploy tools send a list entry back as a change, and a change with `created_at` or `updated_at` is refused. So a list shows these members
# only if `fields` names them.
_LISTING = Listing("connections", CONNECTION_FIELDS, only_on_request=("enabled_clients", "created_at", "updated_at"))


class ConnectionEndpoint(Endpoint):
    """The connections of a tenant."""

    not_found_code = "inexistent_connection"
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_connections",
            "List connections",
            ("read:connections",),
            200,
            CONNECTIONS,
            parameters=LIST_PARAMETERS,
            snapshot_of="connection",
        ),
        "create": Operation(
            "create_connection", "Create a connection", ("create:connections",), 201, CONNECTION, ConnectionToCreate, refuses=(409,)
        ),
        "retrieve": Operation(
            "get_connection", "Read a connection", ("read:connections",), 200, CONNECTION, parameters=PROJECTION, refuses=(404,)
        ),
        "partial_update": Operation(
            "update_connection",
            "Change a connection; `options` are replaced as a whole, but sealed members that the body does not name are kept",
            ("update:connections",),
            200,
            CONNECTION,
            ConnectionToChange,
            refuses=(404, 409),
        ),
        "destroy": Operation(
            "delete_connection",
            "Delete a connection with its users",
            ("delete:connections",),
            202,
            DELETED,
            repeated_status=204,
        ),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        rows = Connection.objects.all()
        strategies, name = texts_of(query, "strategy"), text_of(query, "name")
        if strategies:
            rows = rows.filter(strategy__in=strategies)
        if name:
            rows = rows.filter(name=name)

        return Response(answer_list(rows, query, _LISTING, connection_resource))

    def create(self, request: Request) -> Response:
        body = cleared(self.body_of(request, ConnectionToCreate))
        found = _discovered(self.tenant_id, body["strategy"], body.get("options"))
        with _options_refused():
            connection = connections.create_connection(tenant_id=self.tenant_id, discovered=found, **body)
        return Response(connection_resource(connection), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        project = projection_of(request.query_params, CONNECTION_FIELDS)
        return Response(project(connection_resource(_connection_at(id))))

    def partial_update(self, request: Request, id: str) -> Response:
        changes = cleared(self.body_of(request, ConnectionToChange))
        found = _discovered(self.tenant_id, _connection_at(id).strategy, changes.get("options"))
        with _options_refused():
            connection = connections.update_connection(tenant_id=self.tenant_id, connection_id=id, changes=changes, discovered=found)
        return Response(connection_resource(connection))

    def destroy(self, request: Request, id: str) -> Response:
        try:
            job = connections.delete_connection(tenant_id=self.tenant_id, connection_id=id)
        except NotFound:
            # Clients repeat a delete if its response was lost, so a missing row is a success.
            return Response(status=204)
        return Response({"deleted_at": wire_time(job.created_at if job else timezone.now())}, status=202)


def _connection_at(connection_id: str) -> Connection:
    connection = Connection.objects.filter(pk=connection_id).first()
    if connection is None:
        raise NotFound("The connection does not exist")
    return connection


def _discovered(tenant_id: str, strategy: str, options: dict[str, Any] | None) -> dict[str, Any]:
    """Fetch the metadata that the provider publishes, before any row is locked. Sends no request for options that will be refused."""
    if not options or strategy not in STRATEGIES or options_problem(strategy, options, is_database=False):
        return {}
    return discovered_metadata(tenant_id, strategy, options)


@contextmanager
def _options_refused() -> Iterator[None]:
    """Answer invalid options with only the message of the error, because client programs compare it."""
    try:
        yield
    except Invalid as error:
        if set(error.errors) == {"options"}:
            raise Refusal(400, " ".join(error.errors["options"]), "invalid_body") from error
        raise
