"""Clients: `/clients`, `/clients/{id}`, `/clients/{id}/rotate-secret`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from django.db.models import F, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.client_bodies import APP_TYPES, ClientToChange, ClientToCreate
from authapi.api.client_documents import client_resource, client_summary, columns_of, defaults_of
from authapi.api.client_schemas import CLIENT, CLIENT_FIELDS, CLIENTS, LIST_PARAMETERS
from authapi.api.credential_bodies import new_credential
from authapi.models import Client
from authapi.services import clients
from authapi.services.client_credentials import create_client_with_credentials
from authapi.services.clients import BreaksLevel
from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import PROJECTION
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import projection_of, switch_of, text_of
from foundation.api.refusals import Refusal, invalid_query, not_supported
from identity.api.lookups import scopes_of
from identity.services.failures import NotFound

INEXISTENT_CLIENT = "inexistent_client"
# Deployment tools send the items of a list back to change a client. So lists leave out the times: a body with these read-only members
# would be refused.
_LISTING = Listing("clients", CLIENT_FIELDS, kept=frozenset({"tenant"}), only_on_request=("created_at", "updated_at"))
_READ = ("read:clients", "read:client_summary")


class ClientEndpoint(Endpoint):
    """The applications of a tenant."""

    not_found_code = INEXISTENT_CLIENT
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_clients", "List clients", _READ, 200, CLIENTS, parameters=LIST_PARAMETERS),
        "create": Operation(
            "create_client",
            "Create a client; only this response contains its secret",
            ("create:clients",),
            201,
            CLIENT,
            ClientToCreate,
            refuses=(409,),
        ),
        "retrieve": Operation("get_client", "Read a client", _READ, 200, CLIENT, parameters=PROJECTION, refuses=(404,)),
        "partial_update": Operation(
            "update_client",
            "Change a client; metadata is merged, other fields are replaced",
            ("update:clients", "update:client_keys"),
            200,
            CLIENT,
            ClientToChange,
            refuses=(404, 409),
        ),
        "destroy": Operation("delete_client", "Delete a client if it exists", ("delete:clients",), 204),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        # Global clients administer the whole tenant, so they are listed only on request.
        rows = Client.objects.filter(is_global=switch_of(query, "is_global", default=False), is_account_page=False)
        if query.get("is_first_party"):
            rows = rows.filter(is_first_party=switch_of(query, "is_first_party", default=True))
        types = [name for name in (text_of(query, "app_type") or "").split(",") if name]
        if set(types) - set(APP_TYPES):
            raise invalid_query(f"Expected some of {', '.join(APP_TYPES)}", "app_type")
        if types:
            rows = rows.filter(app_type__in=types)
        if text_of(query, "q"):
            raise not_supported("Search by query is not supported for clients: filter by app_type, is_first_party and is_global.")
        render = client_resource if "read:clients" in scopes_of(request) else client_summary
        return Response(answer_list(by_creation(rows), query, _LISTING, render))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, ClientToCreate)
        methods = body.pop("client_authentication_methods", None)
        columns = {**defaults_of(body.get("app_type", "")), **columns_of(body, has_methods=bool(methods))}
        if methods:
            self.require_scope(request, "create:client_credentials")
            new = {method: [new_credential(credential) for credential in named["credentials"]] for method, named in methods.items()}
            with _every_rule_named():
                client = create_client_with_credentials(tenant_id=self.tenant_id, methods=new, **columns)
            return Response(client_resource(client), status=201)
        with _every_rule_named():
            client, secret = clients.create_client(tenant_id=self.tenant_id, **columns)
        return Response(client_resource(client, secret=secret), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        render = client_resource if "read:clients" in scopes_of(request) else client_summary
        project = projection_of(request.query_params, _LISTING.fields, kept=_LISTING.kept)
        return Response(project(render(client_at(id))))

    def partial_update(self, request: Request, id: str) -> Response:
        body = self.body_of(request, ClientToChange)
        if "client_secret" in body:
            self.require_scope(request, "update:client_keys")
        if body.keys() - {"client_secret"}:
            self.require_scope(request, "update:clients")
        client = changeable_client(id)
        changes = columns_of(
            body, has_methods=bool(body.get("client_authentication_methods", client.proof_method)), present=client_resource(client)
        )
        with _every_rule_named():
            changed = clients.update_client(tenant_id=self.tenant_id, client_id=id, changes=changes, secret=body.get("client_secret"))
        return Response(client_resource(changed))

    def destroy(self, request: Request, id: str) -> Response:
        try:
            changeable_client(id)
            clients.delete_client(tenant_id=self.tenant_id, client_id=id)
        except NotFound:
            # Deleting is idempotent: clients repeat a request whose response was lost.
            return Response(status=204)
        return Response(status=204)


@contextmanager
def _every_rule_named() -> Iterator[None]:
    """Convert `BreaksLevel` to a refusal whose text lists every violated rule of the compliance level, with the setting that breaks it."""
    try:
        yield
    except BreaksLevel as error:
        named = [f"'{text.removesuffix('.')}' on property {member}" for member, texts in error.errors.items() for text in texts]
        raise Refusal(400, f"Payload validation error: {', '.join(named)}", "invalid_body") from error


class ClientSecretEndpoint(Endpoint):
    """A new secret for a client."""

    not_found_code = INEXISTENT_CLIENT
    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "rotate_client_secret",
            "Replace the secret of a client; its access tokens for APIs are revoked",
            ("update:client_keys",),
            200,
            CLIENT,
            refuses=(404,),
        )
    }

    def create(self, request: Request, id: str) -> Response:
        client = changeable_client(id)
        if client.is_public:
            raise not_supported("A client that does not authenticate has no secret.")
        if client.proof_method:
            raise not_supported(f"The client authenticates with {client.proof_method}: change its credentials instead.")
        rotated, secret = clients.rotate_client_secret(tenant_id=self.tenant_id, client_id=id)
        return Response(client_resource(rotated, secret=secret))


def client_at(client_id: str) -> Client:
    """Return the client. Raises `NotFound`."""
    client = Client.objects.filter(client_id=client_id, is_account_page=False).first()
    if client is None:
        raise NotFound("The client does not exist.")
    return client


def by_creation(rows: QuerySet[Client]) -> QuerySet[Client]:
    """Annotate clients with `created_at`, the sort column of lists. The OAuth toolkit names the column `created`."""
    return rows.annotate(created_at=F("created"))


def changeable_client(client_id: str) -> Client:
    """Return the client if the tenant may change it. Raises `NotFound`, and a refusal with status 403 for a global client."""
    client = client_at(client_id)
    if client.is_global:
        raise Refusal(403, "A global client is managed by the platform.")
    return client
