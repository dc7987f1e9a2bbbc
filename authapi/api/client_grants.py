"""Client grants: `/client-grants`, `/client-grants/{id}`, and the organizations in which they apply."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.validators import RegexValidator
from django.db.models import Q, QuerySet
from django.http import QueryDict
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.resource_schemas import CLIENT_GRANT, CLIENT_GRANT_FIELDS, CLIENT_GRANTS, GRANT_PARAMETERS, ORGANIZATION_GRANT_PARAMETERS
from authapi.models import ApiResource, ClientGrant, OrganizationClientGrant
from authapi.services import client_grants
from authapi.services.api_resources import ensure_management_api
from authapi.services.grant_terms import DELEGATION, IMPERSONATION
from authapi.tokens.audiences import is_management_audience
from authapi.tokens.keys import trust
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, ListOf, Switch, Text
from foundation.api.list_schemas import TAKE_FORM, taken_list
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import switch_of, text_of, texts_of
from foundation.api.refusals import Refusal, invalid_body, invalid_query, not_supported
from identity.api.lookups import organization_at
from identity.api.organizations.organization_schemas import ORGANIZATION, ORGANIZATION_FIELDS
from identity.documents.organization import organization_resource
from identity.services.failures import Invalid, NotFound

_LISTING = Listing("client_grants", CLIENT_GRANT_FIELDS)
_USES = ("deny", "allow", "require")
_SETTINGS = ("organization_usage", "allow_any_organization", "authorization_details_types", "token_exchange")
_IN_ANY = Q(settings__allow_any_organization=True)
_IN_NAMED = Q(settings__allow_any_organization=False) | Q(settings__allow_any_organization__isnull=True)
_GRANT_ID = RegexValidator(r"\Acgr_[A-Za-z0-9]{16}\Z", "String does not match pattern ^cgr_[A-Za-z0-9]{16}$")
_MOST_IDS = 10
_NO_GRANT = "The client grant does not exist."


class GrantToChange(Closed):
    scope = ListOf(required=False, child=Text(max_length=280), allow_null=True, max_length=1000)
    allow_all_scopes = Switch(required=False)
    organization_usage = serializers.ChoiceField(required=False, choices=_USES, allow_null=True)
    allow_any_organization = Switch(required=False, allow_null=True)
    authorization_details_types = ListOf(required=False, child=Text(max_length=255))
    token_exchange = serializers.ChoiceField(required=False, choices=[DELEGATION, IMPERSONATION], allow_null=True)


class GrantToCreate(GrantToChange):
    client_id = Text(required=False, max_length=64)
    audience = Text(max_length=600)
    subject_type = serializers.ChoiceField(required=False, choices=ClientGrant.SubjectType.values)
    default_for = serializers.ChoiceField(required=False, choices=["third_party_clients"])


class GrantToName(Closed):
    grant_id = Text(validators=[_GRANT_ID])


class ClientGrantEndpoint(Endpoint):
    """The scopes that a client may request at an API."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_client_grants", "List client grants", ("read:client_grants",), 200, CLIENT_GRANTS, parameters=GRANT_PARAMETERS
        ),
        "create": Operation(
            "create_client_grant",
            "Allow a client to request tokens for an API",
            ("create:client_grants",),
            201,
            CLIENT_GRANT,
            GrantToCreate,
            refuses=(404, 409),
        ),
        "retrieve": Operation("get_client_grant", "Read a client grant", ("read:client_grants",), 200, CLIENT_GRANT, refuses=(404,)),
        "partial_update": Operation(
            "update_client_grant", "Change a client grant", ("update:client_grants",), 200, CLIENT_GRANT, GrantToChange, refuses=(404,)
        ),
        "destroy": Operation("delete_client_grant", "Delete a client grant if it exists", ("delete:client_grants",), 204),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        rows = _filtered(ClientGrant.objects.select_related("client", "api_resource"), query)
        kind = text_of(query, "subject_type")
        if kind not in (None, *ClientGrant.SubjectType.values):
            raise invalid_query(f"Expected one of {', '.join(ClientGrant.SubjectType.values)}", "subject_type")
        if kind:
            rows = rows.filter(subject_type=kind)
        if query.get("allow_any_organization"):
            rows = rows.filter(_IN_ANY if switch_of(query, "allow_any_organization", default=True) else _IN_NAMED)
        if text_of(query, "default_for"):
            rows = rows.none()
        return Response(answer_list(rows, query, _LISTING, client_grant))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, GrantToCreate)
        if "default_for" in body:
            raise not_supported("Defaults for client grants are not supported: create a grant for each client.")
        if "client_id" not in body:
            raise invalid_body("Missing required property", "client_id")
        resource = _resource_of(self.tenant_id, body["audience"])
        columns = _columns(body) | {name: body[name] for name in ("subject_type",) if name in body}
        try:
            grant = client_grants.create_client_grant(
                tenant_id=self.tenant_id, client_id=body["client_id"], api_resource=resource, **columns
            )
        except NotFound as error:
            raise Refusal(404, "The client does not exist.", "inexistent_client") from error
        except Invalid as error:
            raise _scope_refused(error) from error
        return Response(client_grant(grant), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(client_grant(grant_at(id)))

    def partial_update(self, request: Request, id: str) -> Response:
        body = self.body_of(request, GrantToChange)
        if not body:
            raise invalid_body("Too few properties defined, minimum 1", "body")
        grant = grant_at(id)
        try:
            changed = client_grants.change_client_grant(tenant_id=self.tenant_id, grant_id=grant.pk, changes=_columns(body))
        except Invalid as error:
            raise _scope_refused(error) from error
        return Response(client_grant(changed))

    def destroy(self, request: Request, id: str) -> Response:
        try:
            client_grants.delete_client_grant(tenant_id=self.tenant_id, grant_id=id)
        except NotFound:
            # Deleting is idempotent: clients repeat a request whose response was lost.
            return Response(status=204)
        return Response(status=204)


class GrantOrganizationEndpoint(Endpoint):
    """The organizations in which a client grant applies."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_client_grant_organizations",
            "List the organizations of a client grant",
            ("read:organization_client_grants",),
            200,
            taken_list("organizations", ORGANIZATION),
            parameters=TAKE_FORM,
            refuses=(404,),
        )
    }

    def list(self, request: Request, id: str) -> Response:
        rows = OrganizationClientGrant.objects.filter(client_grant=grant_at(id)).select_related("organization")
        listing = Listing("organizations", ORGANIZATION_FIELDS, only_take=True)
        return Response(answer_list(rows, request.query_params, listing, lambda row: organization_resource(row.organization)))


class OrganizationGrantEndpoint(Endpoint):
    """The client grants that apply in an organization."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_client_grants",
            "List the client grants of an organization",
            ("read:organization_client_grants",),
            200,
            CLIENT_GRANTS,
            parameters=ORGANIZATION_GRANT_PARAMETERS,
            refuses=(404,),
        ),
        "create": Operation(
            "add_organization_client_grant",
            "Apply a client grant in an organization",
            ("create:organization_client_grants",),
            201,
            CLIENT_GRANT,
            GrantToName,
            refuses=(404, 409),
        ),
        "destroy": Operation(
            "remove_organization_client_grant",
            "Stop applying a client grant in an organization",
            ("delete:organization_client_grants",),
            204,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        inside = OrganizationClientGrant.objects.filter(organization=organization_at(id)).values("client_grant")
        rows = ClientGrant.objects.filter(pk__in=inside).select_related("client", "api_resource")
        named = texts_of(request.query_params, "grant_ids")
        if len(named) > _MOST_IDS:
            raise invalid_query(f"Array is too long ({len(named)}), maximum {_MOST_IDS}", "grant_ids")
        if named:
            rows = rows.filter(pk__in=named)
        return Response(answer_list(_filtered(rows, request.query_params), request.query_params, _LISTING, client_grant))

    def create(self, request: Request, id: str) -> Response:
        grant_id = self.body_of(request, GrantToName)["grant_id"]
        organization_at(id)
        grant = client_grants.add_grant_to_organization(tenant_id=self.tenant_id, organization_id=id, grant_id=grant_id)
        return Response(client_grant(grant), status=201)

    def destroy(self, request: Request, id: str, grant_id: str) -> Response:
        client_grants.remove_grant_from_organization(tenant_id=self.tenant_id, organization_id=id, grant_id=grant_id)
        return Response(status=204)


def client_grant(grant: ClientGrant) -> dict[str, Any]:
    """Return the grant as the management interface shows it. Fields that do not apply are left out."""
    scopes = {"allow_all_scopes": True} if grant.allows_all_scopes else {"scope": grant.scopes}
    named = {"id": grant.pk, "client_id": grant.client.client_id, "audience": grant.api_resource.identifier}
    return {**named, **scopes, "subject_type": grant.subject_type, **grant.settings}


def grant_at(grant_id: str) -> ClientGrant:
    """Return the grant. Raises `NotFound`."""
    grant = ClientGrant.objects.select_related("client", "api_resource").filter(pk=grant_id).first()
    if grant is None:
        raise NotFound(_NO_GRANT)
    return grant


def _filtered(rows: QuerySet[ClientGrant], query: QueryDict) -> QuerySet[ClientGrant]:
    columns = {"client_id": "client__client_id", "audience": "api_resource__identifier"}
    wanted = {column: text_of(query, name) for name, column in columns.items()}
    return rows.filter(**{column: value for column, value in wanted.items() if value})


def _resource_of(tenant_id: str, audience: str) -> ApiResource:
    """Return the API of an audience. Every host of the tenant is an audience of the management interface."""
    if is_management_audience(audience, trust.get(tenant_id).hosts):
        return ensure_management_api(tenant_id)
    resource = ApiResource.objects.filter(identifier=audience).first()
    if resource is None:
        raise Refusal(404, "The resource server does not exist.", "inexistent_resource_server")
    return resource


def _columns(body: dict[str, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if "scope" in body:
        columns["scopes"] = body["scope"] or []
    if "allow_all_scopes" in body:
        columns["allows_all_scopes"] = body["allow_all_scopes"]
    kept = {name: body[name] for name in _SETTINGS if name in body}
    if kept:
        columns["settings"] = kept
    return columns


def _scope_refused(error: Invalid) -> Exception:
    names = {"scopes": "scope", "authorization_details_types": "authorization_details_types"}
    return next((invalid_body(error.errors[name][0], shown) for name, shown in names.items() if name in error.errors), error)
