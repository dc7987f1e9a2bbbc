"""The clients that may use a connection: `/connections/{id}/clients`, `/clients/{id}/connections`."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.client_schemas import CONNECTION_CLIENTS
from authapi.api.clients import INEXISTENT_CLIENT, by_creation, client_at
from authapi.models import Client
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, Switch, Text
from foundation.api.list_schemas import TAKE_FORM, take_form, taken_list
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.refusals import Refusal
from identity.api.connection_schemas import CONNECTION, CONNECTION_FIELDS
from identity.api.lookups import connection_at
from identity.documents.connection import connection_resource
from identity.models import Connection
from identity.services.connections import change_enabled_clients

_MOST_CHANGES = 50
_CLIENTS = Listing("clients", ("client_id",), only_take=True, largest_take=1000)


class ClientStatus(Closed):
    client_id = Text(max_length=64)
    status = Switch()


class ConnectionClientEndpoint(Endpoint):
    """The clients that may use a connection."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_connection_clients",
            "List the clients that may use a connection",
            ("read:connections",),
            200,
            CONNECTION_CLIENTS,
            parameters=take_form(_CLIENTS.largest_take),
            refuses=(404,),
            snapshot_of="connection",
        ),
        "partial_update": Operation(
            "update_connection_clients",
            "Allow or forbid clients to use a connection",
            ("update:connections",),
            204,
            body=ClientStatus,
            is_body_list=True,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        rows = by_creation(Client.objects.filter(client_id__in=connection_at(id).enabled_clients))
        return Response(answer_list(rows, request.query_params, _CLIENTS, lambda client: {"client_id": client.client_id}))

    def partial_update(self, request: Request, id: str) -> Response:
        connection = connection_at(id)
        wanted = {item["client_id"]: item["status"] for item in self.list_of(request, ClientStatus, most=_MOST_CHANGES)}
        added = [client_id for client_id, is_enabled in wanted.items() if is_enabled]
        if Client.objects.filter(client_id__in=added).count() != len(added):
            raise Refusal(404, "The client does not exist.", INEXISTENT_CLIENT)
        removed = [client_id for client_id, is_enabled in wanted.items() if not is_enabled]
        change_enabled_clients(tenant_id=self.tenant_id, connection_id=connection.pk, added=added, removed=removed)
        return Response(status=204)


class ClientConnectionEndpoint(Endpoint):
    """The connections that a client may use."""

    not_found_code = INEXISTENT_CLIENT
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_client_connections",
            "List the connections that a client may use",
            ("read:connections read:clients",),
            200,
            taken_list("connections", CONNECTION),
            parameters=TAKE_FORM,
            refuses=(404,),
            snapshot_of="connection",
        )
    }

    def list(self, request: Request, id: str) -> Response:
        rows = Connection.objects.filter(enabled_clients__contains=[client_at(id).client_id])
        return Response(
            answer_list(rows, request.query_params, Listing("connections", CONNECTION_FIELDS, only_take=True), connection_resource)
        )
