"""The status of a connection, and its users by email address: `/connections/{id}/status`, `/connections/{id}/users`."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation, Parameter, Schema
from foundation.api.queries import text_of
from foundation.api.refusals import Refusal, invalid_query
from identity.api.lookups import connection_at
from identity.services.users import delete_users_by_email

# A connection of this strategy is online while an agent in the network of its directory is connected. The service has no such agent, so a
# connection of this strategy is always offline.
_NEEDS_AGENT = "ad"
_ONLINE: Schema = {"type": "object", "additionalProperties": False}
_EMAIL = Parameter("email", {"type": "string"}, "The whole email address. Letter case is ignored.", is_required=True)


class ConnectionStatusEndpoint(Endpoint):
    """Whether a connection is online."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "get_connection_status",
            "Tell whether a connection is online; 404 when it is offline",
            ("read:connections",),
            200,
            _ONLINE,
            refuses=(404,),
        )
    }

    def list(self, request: Request, id: str) -> Response:
        if connection_at(id).strategy == _NEEDS_AGENT:
            raise Refusal(404, "The connection is offline.")
        return Response({})


class ConnectionUserEndpoint(Endpoint):
    """The users of a connection."""

    operations: ClassVar[dict[str, Operation]] = {
        "destroy": Operation(
            "delete_connection_users",
            "Delete the users of a connection who have the given email address, if there are any",
            ("delete:users",),
            204,
            parameters=(_EMAIL,),
            refuses=(404,),
        )
    }

    def destroy(self, request: Request, id: str) -> Response:
        connection = connection_at(id)
        email = text_of(request.query_params, "email")
        if email is None:
            raise invalid_query("Missing required property", "email")
        delete_users_by_email(tenant_id=self.tenant_id, connection_id=connection.pk, email=email)
        return Response(status=204)
