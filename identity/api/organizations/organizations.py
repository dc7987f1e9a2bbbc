"""Organizations: `/organizations`, `/organizations/{id}`, `/organizations/name/{name}`."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list, order_of
from foundation.api.refusals import invalid_body
from identity.api.lookups import NO_ORGANIZATION, organization_at, scopes_of
from identity.api.organizations.organization_bodies import KEPT, OrganizationToChange, OrganizationToCreate
from identity.api.organizations.organization_schemas import LIST_PARAMETERS, ORGANIZATION, ORGANIZATION_FIELDS, ORGANIZATIONS
from identity.documents.organization import enabled_connection_resource, organization_resource
from identity.models import Organization, OrganizationConnection
from identity.services import memberships, organizations
from identity.services.failures import NotFound

_LISTING = Listing("organizations", ORGANIZATION_FIELDS)
_SORTS = {"name": "name", "display_name": "display_name", "created_at": "created_at"}
_SUMMARY = ("id", "name", "display_name")
_EMPTY: dict[str, Any] = {"display_name": "", "branding": {}, "metadata": {}}


class OrganizationEndpoint(Endpoint):
    """The organizations of a tenant."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organizations",
            "List organizations",
            ("read:organizations", "read:organizations_summary"),
            200,
            ORGANIZATIONS,
            parameters=LIST_PARAMETERS,
            snapshot_of="organization",
        ),
        "create": Operation(
            "create_organization",
            "Create an organization, optionally with connections",
            ("create:organizations",),
            201,
            ORGANIZATION,
            OrganizationToCreate,
            refuses=(409,),
        ),
        "retrieve": Operation("get_organization", "Read an organization", ("read:organizations",), 200, ORGANIZATION, refuses=(404,)),
        "partial_update": Operation(
            "update_organization",
            "Change an organization; maps are replaced as a whole",
            ("update:organizations",),
            200,
            ORGANIZATION,
            OrganizationToChange,
            refuses=(404, 409),
        ),
        "destroy": Operation(
            "delete_organization",
            "Delete an organization with its relations, groups and roles",
            ("delete:organizations",),
            204,
            refuses=(404,),
        ),
    }

    def list(self, request: Request) -> Response:
        is_summary = "read:organizations" not in scopes_of(request)

        def render(organization: Organization) -> dict[str, Any]:
            document = organization_resource(organization)
            return {name: document[name] for name in _SUMMARY if name in document} if is_summary else document

        query = request.query_params
        return Response(answer_list(Organization.objects.all(), query, _LISTING, render, order=order_of(query, _SORTS)))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, OrganizationToCreate)
        connections = body.pop("enabled_connections", None)
        if connections:
            self.require_scope(request, "create:organization_connections")
        name, fields = body.pop("name"), _stored(body)
        try:
            organization = memberships.create_connected_organization(
                tenant_id=self.tenant_id, name=name, connections=connections or [], **fields
            )
        except NotFound as error:
            raise invalid_body(str(error), "enabled_connections") from error
        document = organization_resource(organization)
        if connections is not None:
            rows = OrganizationConnection.objects.filter(organization=organization).select_related("connection").order_by("pk")
            document["enabled_connections"] = [enabled_connection_resource(row) for row in rows]
        return Response(document, status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(organization_resource(organization_at(id)))

    def partial_update(self, request: Request, id: str) -> Response:
        changes = _stored(self.body_of(request, OrganizationToChange))
        organization = organizations.update_organization(tenant_id=self.tenant_id, organization_id=id, changes=changes)
        return Response(organization_resource(organization))

    def destroy(self, request: Request, id: str) -> Response:
        organizations.delete_organization(tenant_id=self.tenant_id, organization_id=id)
        return Response(status=204)


class OrganizationNameEndpoint(Endpoint):
    """One organization by its name."""

    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation(
            "get_organization_by_name", "Find an organization by its name", ("read:organizations",), 200, ORGANIZATION, refuses=(404,)
        )
    }

    def retrieve(self, request: Request, name: str) -> Response:
        organization = Organization.objects.filter(name=name).first()
        if organization is None:
            raise NotFound(NO_ORGANIZATION)
        return Response(organization_resource(organization))


def _stored(body: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that the body sets. Null clears a column; members without effect are stored together in `extras`."""
    columns = {name: _EMPTY[name] if value is None else value for name, value in body.items() if name not in KEPT}
    kept = {name: body[name] for name in KEPT if name in body}
    if kept:
        columns["extras"] = kept
    return columns
