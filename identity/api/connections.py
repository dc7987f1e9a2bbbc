"""Connections: `/connections`, `/connections/{id}`."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from identity.api.connection_bodies import ConnectionToChange, ConnectionToCreate, cleared
from identity.api.connection_schemas import CONNECTION, CONNECTION_FIELDS, CONNECTIONS, DELETED, LIST_PARAMETERS
from identity.api.endpoint import Endpoint
from identity.api.list_schemas import PROJECTION
from identity.api.operations import Operation
from identity.api.paging import Listing, answer_list
from identity.api.queries import projection_of, text_of, texts_of
from identity.documents.connection import connection_resource
from identity.models import Connection
from identity.services import connections
from identity.services.failures import NotFound
from identity.timestamps import wire_time

_LISTING = Listing("connections")


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
            parameters=(*LIST_PARAMETERS, *PROJECTION),
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
            "Change a connection; `options` are replaced whole, but sealed members that are not named stay",
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
        project = projection_of(query, CONNECTION_FIELDS)
        rows = Connection.objects.all()
        strategies, name = texts_of(query, "strategy"), text_of(query, "name")
        if strategies:
            rows = rows.filter(strategy__in=strategies)
        if name:
            rows = rows.filter(name=name)

        def render(connection: Connection) -> dict[str, Any]:
            # Deploy tools send back what a list shows, so it shows no times, which are never written.
            return project.of_list(connection_resource(connection), "enabled_clients", "created_at", "updated_at")

        return Response(answer_list(rows, query, _LISTING, render))

    def create(self, request: Request) -> Response:
        body = cleared(self.body_of(request, ConnectionToCreate))
        connection = connections.create_connection(tenant_id=self.tenant_id, **body)
        return Response(connection_resource(connection), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        project = projection_of(request.query_params, CONNECTION_FIELDS)
        connection = Connection.objects.filter(pk=id).first()
        if connection is None:
            raise NotFound("The connection does not exist.")
        return Response(project(connection_resource(connection)))

    def partial_update(self, request: Request, id: str) -> Response:
        changes = cleared(self.body_of(request, ConnectionToChange))
        connection = connections.update_connection(tenant_id=self.tenant_id, connection_id=id, changes=changes)
        return Response(connection_resource(connection))

    def destroy(self, request: Request, id: str) -> Response:
        try:
            job = connections.delete_connection(tenant_id=self.tenant_id, connection_id=id)
        except NotFound:
            # Clients repeat a delete whose answer was lost: gone is gone.
            return Response(status=204)
        return Response({"deleted_at": wire_time(job.created_at if job else timezone.now())}, status=202)
