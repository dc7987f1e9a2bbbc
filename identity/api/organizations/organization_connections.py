"""The connections of an organization. The endpoints show them in two forms: `.../enabled_connections` and `.../connections`."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed
from foundation.api.list_schemas import LIST_FORMS
from foundation.api.operations import Lifecycle, Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import switch_of
from identity.api.lookups import organization_at
from identity.api.organizations.organization_bodies import (
    EnabledConnectionToAdd,
    EnabledConnectionToChange,
    OrganizationConnectionToAdd,
    OrganizationConnectionToChange,
)
from identity.api.organizations.organization_schemas import (
    ENABLED_CONNECTION,
    ENABLED_CONNECTION_FIELDS,
    ENABLED_CONNECTIONS,
    IS_ENABLED,
    ORGANIZATION_CONNECTION,
    ORGANIZATION_CONNECTION_FIELDS,
    ORGANIZATION_CONNECTIONS,
)
from identity.documents.organization import enabled_connection_resource, organization_connection_resource
from identity.models import OrganizationConnection
from identity.services import memberships
from identity.services.failures import NotFound

_UNKNOWN = "No connection found by that id."
_READ, _CREATE = ("read:organization_connections",), ("create:organization_connections",)
_UPDATE, _DELETE = ("update:organization_connections",), ("delete:organization_connections",)


class _Endpoint(Endpoint):
    """Endpoints that both forms share. The forms differ in their fields and in the rows that they show."""

    listing: ClassVar[Listing]
    to_add: ClassVar[type[Closed]]
    to_change: ClassVar[type[Closed]]

    def render(self, row: OrganizationConnection) -> dict[str, Any]:
        """Return the row in this form."""
        raise NotImplementedError

    def rows(self, organization_id: str) -> QuerySet[OrganizationConnection]:
        return OrganizationConnection.objects.filter(organization_id=organization_id).select_related("connection")

    def list(self, request: Request, id: str) -> Response:
        rows = self.rows(organization_at(id).pk)
        if self.listing.key == "connections" and request.query_params.get("is_enabled"):
            rows = rows.filter(is_enabled=switch_of(request.query_params, "is_enabled", default=True))
        return Response(answer_list(rows, request.query_params, self.listing, self.render))

    def create(self, request: Request, id: str) -> Response:
        flags = _without_null(self.body_of(request, self.to_add))
        row = memberships.add_connection(tenant_id=self.tenant_id, organization_id=id, **flags)
        return Response(self.render(row), status=201)

    def retrieve(self, request: Request, id: str, connection_id: str) -> Response:
        return Response(self.render(self._found(id, connection_id)))

    def partial_update(self, request: Request, id: str, connection_id: str) -> Response:
        changes = _without_null(self.body_of(request, self.to_change))
        self._found(id, connection_id)
        row = memberships.update_organization_connection(
            tenant_id=self.tenant_id, organization_id=id, connection_id=connection_id, changes=changes
        )
        return Response(self.render(row))

    def destroy(self, request: Request, id: str, connection_id: str) -> Response:
        organization_at(id)
        try:
            memberships.remove_connection(tenant_id=self.tenant_id, organization_id=id, connection_id=connection_id)
        except NotFound:
            # Clients repeat a delete if its response was lost, so a missing row is a success.
            return Response(status=204)
        return Response(status=204)

    def _found(self, organization_id: str, connection_id: str) -> OrganizationConnection:
        organization_at(organization_id)
        row = self.rows(organization_id).filter(connection=connection_id).first()
        if row is None:
            raise NotFound(_UNKNOWN)
        return row


class EnabledConnectionEndpoint(_Endpoint):
    """The older form: enabled connections and three flags."""

    listing = Listing("enabled_connections", ENABLED_CONNECTION_FIELDS)
    to_add = EnabledConnectionToAdd
    to_change = EnabledConnectionToChange
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_enabled_connections",
            "List the enabled connections of an organization",
            _READ,
            200,
            ENABLED_CONNECTIONS,
            parameters=LIST_FORMS,
            refuses=(404,),
            snapshot_of="organization.connection",
        ),
        "create": Operation(
            "add_organization_enabled_connection",
            "Enable a connection for an organization",
            _CREATE,
            201,
            ENABLED_CONNECTION,
            EnabledConnectionToAdd,
            refuses=(404, 409),
        ),
        "retrieve": Operation(
            "get_organization_enabled_connection",
            "Read an enabled connection of an organization",
            _READ,
            200,
            ENABLED_CONNECTION,
            refuses=(404,),
        ),
        "partial_update": Operation(
            "update_organization_enabled_connection",
            "Change an enabled connection of an organization",
            _UPDATE,
            200,
            ENABLED_CONNECTION,
            EnabledConnectionToChange,
            refuses=(404,),
        ),
        "destroy": Operation(
            "delete_organization_enabled_connection", "Remove an enabled connection from an organization", _DELETE, 204, refuses=(404,)
        ),
    }

    def render(self, row: OrganizationConnection) -> dict[str, Any]:
        return enabled_connection_resource(row)

    def rows(self, organization_id: str) -> QuerySet[OrganizationConnection]:
        return super().rows(organization_id).filter(is_enabled=True)


class OrganizationConnectionEndpoint(_Endpoint):
    """The newer form: every connection, with `is_enabled`, name and access levels."""

    listing = Listing("connections", ORGANIZATION_CONNECTION_FIELDS)
    to_add = OrganizationConnectionToAdd
    to_change = OrganizationConnectionToChange
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_connections",
            "List the connections of an organization",
            _READ,
            200,
            ORGANIZATION_CONNECTIONS,
            parameters=(*LIST_FORMS, IS_ENABLED),
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
            snapshot_of="organization.connection",
        ),
        "create": Operation(
            "add_organization_connection",
            "Add a connection to an organization",
            _CREATE,
            201,
            ORGANIZATION_CONNECTION,
            OrganizationConnectionToAdd,
            refuses=(404, 409),
            lifecycle=Lifecycle.EARLY_ACCESS,
        ),
        "retrieve": Operation(
            "get_organization_connection",
            "Read a connection of an organization",
            _READ,
            200,
            ORGANIZATION_CONNECTION,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
        ),
        "partial_update": Operation(
            "update_organization_connection",
            "Change a connection of an organization",
            _UPDATE,
            200,
            ORGANIZATION_CONNECTION,
            OrganizationConnectionToChange,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
        ),
        "destroy": Operation(
            "delete_organization_connection",
            "Remove a connection from an organization",
            _DELETE,
            204,
            refuses=(404,),
            lifecycle=Lifecycle.EARLY_ACCESS,
        ),
    }

    def render(self, row: OrganizationConnection) -> dict[str, Any]:
        return organization_connection_resource(row)


def _without_null(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: "" if value is None else value for name, value in flags.items()}
