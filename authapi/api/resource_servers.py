"""Resource servers (the APIs for which tokens are issued): `/resource-servers`, `/resource-servers/{id or identifier}`."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import unquote

from django.core.validators import RegexValidator
from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.resource_schemas import LIST_PARAMETERS, RESOURCE_SERVER, RESOURCE_SERVER_FIELDS, RESOURCE_SERVERS
from authapi.details.types import LONGEST_SENTENCE, LONGEST_TITLE, LONGEST_TYPE, MAX_TYPES
from authapi.models import ApiResource
from authapi.models.resources import MAX_SCOPES, MAX_TOKEN_SECONDS
from authapi.services.api_resources import create_api_resource, ensure_management_api
from authapi.services.resource_changes import SystemResource, delete_api_resource, update_api_resource
from authapi.tokens.bindings import MECHANISMS
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, JsonObject, ListOf, Switch, Text
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import texts_of
from foundation.api.refusals import Refusal, not_supported
from identity.services.failures import NotFound

INEXISTENT_RESOURCE_SERVER = "inexistent_resource_server"
_COLUMNS = ("identifier", "name", "scopes", "token_lifetime", "token_dialect")
_CHECKS = ("token_encryption", "consent_policy")
_NAME = RegexValidator(r"\A[^<>]*\Z", "String does not match pattern ^[^<>]+$")


class Scope(Closed):
    value = Text(max_length=280, validators=[RegexValidator(r"\A\S+\Z", "A scope must not contain spaces")])
    description = Text(required=False, max_length=500, allow_blank=True, allow_null=True)


class UserPolicy(Closed):
    policy = serializers.ChoiceField(choices=["allow_all", "deny_all", "require_client_grant"])


class ClientPolicy(Closed):
    policy = serializers.ChoiceField(choices=["deny_all", "require_client_grant"])


class SubjectPolicies(Closed):
    user = UserPolicy(required=False)
    client = ClientPolicy(required=False)


class ProofOfPossession(Closed):
    """The mechanism that binds tokens of the API, and the clients that must use it."""

    mechanism = serializers.ChoiceField(choices=list(MECHANISMS))
    required_for = serializers.ChoiceField(required=False, choices=["all_clients", "public_clients"])

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        # A class attribute named `required` would hide an attribute of the framework.
        return {**super().get_fields(), "required": Switch()}


class DetailType(Closed):
    """A type of authorization details (RFC 9396). The members `title`, `sentence` and `schema` are additions of this service."""

    type = Text(max_length=LONGEST_TYPE)
    title = Text(required=False, max_length=LONGEST_TITLE, allow_blank=True, allow_null=True, validators=[_NAME])
    sentence = Text(required=False, max_length=LONGEST_SENTENCE, allow_blank=True, allow_null=True, validators=[_NAME])
    schema = JsonObject(required=False, allow_null=True)


class ResourceServerToChange(Closed):
    """The identifier cannot be changed."""

    name = Text(required=False, max_length=200, validators=[_NAME])
    scopes = ListOf(required=False, child=Scope(), max_length=MAX_SCOPES)
    signing_alg = serializers.ChoiceField(required=False, choices=["HS256", "RS256", "RS512", "PS256"], allow_null=True)
    signing_secret = Text(required=False, min_length=16, max_length=512, allow_null=True)
    token_lifetime = serializers.IntegerField(required=False, min_value=1, max_value=MAX_TOKEN_SECONDS)
    token_lifetime_for_web = serializers.IntegerField(required=False, min_value=1, max_value=MAX_TOKEN_SECONDS)
    token_dialect = serializers.ChoiceField(required=False, choices=ApiResource.Dialect.values)
    enforce_policies = Switch(required=False)
    allow_offline_access = Switch(required=False)
    skip_consent_for_verifiable_first_party_clients = Switch(required=False)
    subject_type_authorization = SubjectPolicies(required=False)
    token_encryption = JsonObject(required=False, allow_null=True)
    proof_of_possession = ProofOfPossession(required=False, allow_null=True)
    consent_policy = Text(required=False, allow_null=True)
    authorization_details = ListOf(required=False, child=DetailType(), allow_null=True, max_length=MAX_TYPES)


class ResourceServerToCreate(ResourceServerToChange):
    identifier = Text(max_length=600)


class ResourceServerEndpoint(Endpoint):
    """The APIs of a tenant, including the management interface."""

    not_found_code = INEXISTENT_RESOURCE_SERVER
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_resource_servers", "List resource servers", ("read:resource_servers",), 200, RESOURCE_SERVERS, parameters=LIST_PARAMETERS
        ),
        "create": Operation(
            "create_resource_server",
            "Create a resource server",
            ("create:resource_servers",),
            201,
            RESOURCE_SERVER,
            ResourceServerToCreate,
            refuses=(409,),
        ),
        "retrieve": Operation(
            "get_resource_server", "Read a resource server", ("read:resource_servers",), 200, RESOURCE_SERVER, refuses=(404,)
        ),
        "partial_update": Operation(
            "update_resource_server",
            "Change a resource server; the list of scopes is replaced as a whole",
            ("update:resource_servers",),
            200,
            RESOURCE_SERVER,
            ResourceServerToChange,
            refuses=(404,),
        ),
        "destroy": Operation("delete_resource_server", "Delete a resource server if it exists", ("delete:resource_servers",), 204),
    }

    def list(self, request: Request) -> Response:
        ensure_management_api(self.tenant_id)
        identifiers = texts_of(request.query_params, "identifiers")
        rows = ApiResource.objects.all()
        if identifiers:
            rows = rows.filter(identifier__in=identifiers)
        return Response(answer_list(rows, request.query_params, Listing("resource_servers", RESOURCE_SERVER_FIELDS), resource_server))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, ResourceServerToCreate)
        made = create_api_resource(tenant_id=self.tenant_id, signing_secret=body.get("signing_secret"), **_columns(body))
        return Response(resource_server(made), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(resource_server(_resource_at(id)))

    def partial_update(self, request: Request, id: str) -> Response:
        body = self.body_of(request, ResourceServerToChange)
        resource = _resource_at(id)
        try:
            changed = update_api_resource(
                tenant_id=self.tenant_id, resource_id=resource.pk, changes=_columns(body), signing_secret=body.get("signing_secret")
            )
        except SystemResource as error:
            raise Refusal(403, str(error)) from error
        return Response(resource_server(changed))

    def destroy(self, request: Request, id: str) -> Response:
        try:
            delete_api_resource(tenant_id=self.tenant_id, resource_id=_resource_at(id).pk)
        except NotFound:
            # Deleting is idempotent: clients repeat a request whose response was lost.
            return Response(status=204)
        except SystemResource as error:
            raise Refusal(403, str(error)) from error
        return Response(status=204)


def resource_server(resource: ApiResource) -> dict[str, Any]:
    """Return the API as the management interface shows it."""
    return {
        "id": resource.pk,
        "identifier": resource.identifier,
        **({"name": resource.name} if resource.name else {}),
        "is_system": resource.is_system,
        "scopes": [{"value": value, "description": text} for value, text in resource.scope_descriptions.items()],
        "signing_alg": "RS256",
        "token_lifetime": resource.token_lifetime or 86_400,
        "token_lifetime_for_web": 7_200,
        "token_dialect": resource.token_dialect,
        "enforce_policies": False,
        "allow_offline_access": False,
        "skip_consent_for_verifiable_first_party_clients": True,
        **resource.settings,
    }


def _resource_at(sent: str) -> ApiResource:
    """Return the API by id or identifier. Some clients percent-encode an identifier twice."""
    names = [sent, unquote(sent)] if "%2F" in sent.upper() else [sent]
    for name in names:
        found = ApiResource.objects.filter(Q(pk=name) | Q(identifier=name)).first()
        if found is not None:
            return found
    raise NotFound("The resource server does not exist.")


def _columns(body: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that the body sets. Refuse values that need an unsupported feature."""
    promised = next((name for name in _CHECKS if body.get(name)), None)
    if promised is not None:
        raise not_supported(f"This service does not support this yet: {promised}.")
    columns = {name: body[name] for name in _COLUMNS if name in body}
    if "scopes" in columns:
        columns["scopes"] = [{**scope, "description": scope.get("description") or ""} for scope in columns["scopes"]]
    kept = {name: value for name, value in body.items() if name not in (*_COLUMNS, *_CHECKS, "signing_secret")}
    if kept.get("authorization_details"):
        entries = kept["authorization_details"]
        kept["authorization_details"] = [{name: value for name, value in entry.items() if value not in (None, "")} for entry in entries]
    return columns | ({"settings": kept} if kept else {})
