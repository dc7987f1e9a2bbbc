"""Keys and certificates of clients: `/clients/{id}/credentials`, `/clients/{id}/credentials/{credential_id}`."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.clients import INEXISTENT_CLIENT, changeable_client, client_at
from authapi.api.credential_bodies import CredentialToChange, CredentialToCreate, new_credential
from authapi.models import ClientCredential
from authapi.services import client_credentials
from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import PROJECTION, reference
from foundation.api.operations import TEXT, TIME, Operation, Schema
from foundation.api.queries import projection_of
from foundation.timestamps import wire_time
from identity.services.failures import NotFound

_PROPERTIES: dict[str, Schema] = {
    **dict.fromkeys(("id", "name", "kid", "alg", "subject_dn", "thumbprint_sha256"), TEXT),
    "credential_type": {**TEXT, "enum": ClientCredential.Type.values},
    "created_at": TIME,
    "updated_at": TIME,
    "expires_at": {**TIME, "nullable": True},
}
CREDENTIAL_FIELDS = tuple(_PROPERTIES)
CREDENTIAL = reference("ClientCredential")
COMPONENTS: dict[str, Schema] = {"ClientCredential": {"type": "object", "properties": _PROPERTIES}}


class ClientCredentialEndpoint(Endpoint):
    """Keys and certificates with which a client authenticates, instead of with a secret.

    A credential has no effect until a setting of the client names its id.
    """

    not_found_code = INEXISTENT_CLIENT
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_client_credentials",
            "List the keys and certificates of a client",
            ("read:client_credentials",),
            200,
            {"type": "array", "items": CREDENTIAL},
            parameters=PROJECTION,
            refuses=(404,),
        ),
        "create": Operation(
            "create_client_credential",
            "Register a key or certificate of a client",
            ("create:client_credentials",),
            201,
            CREDENTIAL,
            CredentialToCreate,
            refuses=(403, 404, 409),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        project = projection_of(request.query_params, CREDENTIAL_FIELDS)
        rows = ClientCredential.objects.filter(client=client_at(id))
        return Response([project(credential_resource(row)) for row in rows])

    def create(self, request: Request, id: str) -> Response:
        body = self.body_of(request, CredentialToCreate)
        changeable_client(id)
        made = client_credentials.create_credential(tenant_id=self.tenant_id, client_id=id, new=new_credential(body))
        return Response(credential_resource(made), status=201)


class SingleClientCredentialEndpoint(Endpoint):
    """One key or certificate of a client."""

    not_found_code = INEXISTENT_CLIENT
    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation(
            "get_client_credential",
            "Read a key or certificate of a client",
            ("read:client_credentials",),
            200,
            CREDENTIAL,
            refuses=(404,),
        ),
        "partial_update": Operation(
            "update_client_credential",
            "Change when a key or certificate expires",
            ("update:client_credentials",),
            200,
            CREDENTIAL,
            CredentialToChange,
            refuses=(403, 404),
        ),
        "destroy": Operation(
            "delete_client_credential",
            "Delete a key or certificate if it exists; for a credential in use, the request is refused",
            ("delete:client_credentials",),
            204,
            refuses=(403, 404),
        ),
    }

    def retrieve(self, request: Request, id: str, credential_id: str) -> Response:
        row = ClientCredential.objects.filter(client=client_at(id), pk=credential_id).first()
        if row is None:
            raise NotFound("The credential does not exist.")
        return Response(credential_resource(row))

    def partial_update(self, request: Request, id: str, credential_id: str) -> Response:
        expires_at = self.body_of(request, CredentialToChange)["expires_at"]
        changeable_client(id)
        named = {"client_id": id, "credential_id": credential_id}
        return Response(credential_resource(client_credentials.change_credential(tenant_id=self.tenant_id, **named, expires_at=expires_at)))

    def destroy(self, request: Request, id: str, credential_id: str) -> Response:
        changeable_client(id)
        try:
            client_credentials.delete_credential(tenant_id=self.tenant_id, client_id=id, credential_id=credential_id)
        except NotFound:
            # Deleting is idempotent: clients repeat a request whose response was lost.
            return Response(status=204)
        return Response(status=204)


def credential_resource(row: ClientCredential) -> dict[str, Any]:
    """Return the credential as the management interface shows it: with `kid` or the thumbprint, and without the PEM."""
    optional = {
        "name": row.name,
        "kid": row.kid,
        "alg": row.algorithm,
        "subject_dn": row.subject_dn,
        "thumbprint_sha256": row.thumbprint,
    }
    return {
        "id": row.pk,
        "credential_type": row.type,
        **{name: value for name, value in optional.items() if value},
        "created_at": wire_time(row.created_at),
        "updated_at": wire_time(row.updated_at),
        "expires_at": wire_time(row.expires_at) if row.expires_at else None,
    }
