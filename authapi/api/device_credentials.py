"""Credentials with which devices log in again: `/device-credentials`, `/device-credentials/{id}`.

The list contains refresh tokens, without their values, and public keys of devices. The device of an old client signs a token, and
the client sends this token to `/oauth/ro`. The public key of the device verifies the token.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.refresh_tokens import living_tokens
from authapi.api.sign_in_schemas import DEVICE_CREDENTIAL_FIELDS, DEVICE_CREDENTIAL_PARAMETERS, DEVICE_CREDENTIALS, REGISTERED_DEVICE
from authapi.models import DeviceKey, RefreshToken
from authapi.services.device_keys import delete_device_key, register_device_key
from authapi.tokens.revocation import revoke_refresh_tokens
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, Text
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import text_of
from foundation.api.refusals import invalid_body, invalid_path, invalid_query

Row = TypeVar("Row", bound=Model)

_LISTING = Listing("device_credentials", DEVICE_CREDENTIAL_FIELDS)
_ROTATING = "rotating_refresh_token"
_PUBLIC_KEY = "public_key"
# The condition that selects refresh tokens, for each type that a query can contain. Public keys are in another table. If the query contains
# no type, the list contains only non-rotating tokens, as clients expect.
_IS_ROTATING: dict[str | None, dict[str, Any]] = {
    None: {"is_rotating": False},
    "refresh_token": {"is_rotating": False},
    _ROTATING: {"is_rotating": True},
}
_ID = re.compile("dcr_[A-Za-z0-9]{16}|rt_[A-Za-z0-9]{22}")


class KeyToRegister(Closed):
    """The public key of a device. If the request has the token of a user, the key belongs to that user.

    If it has the token of a machine, the body contains the id of the user.
    """

    device_name = Text(max_length=255)
    type = serializers.ChoiceField(choices=[_PUBLIC_KEY])
    value = Text(max_length=8192)
    device_id = Text(max_length=255)
    client_id = Text(required=False, max_length=64)
    user_id = Text(required=False, max_length=300)


class DeviceCredentialEndpoint(Endpoint):
    """Refresh tokens and public keys, by device."""

    path_schemas: ClassVar[dict[str, Any]] = {"id": {"pattern": f"^(?:{_ID.pattern})$"}}
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_device_credentials",
            "List the refresh tokens and public keys of devices",
            ("read:device_credentials",),
            200,
            DEVICE_CREDENTIALS,
            parameters=DEVICE_CREDENTIAL_PARAMETERS,
        ),
        "create": Operation(
            "create_device_credential",
            "Register the public key of a device",
            ("create:current_user_device_credentials",),
            201,
            REGISTERED_DEVICE,
            body=KeyToRegister,
        ),
        "destroy": Operation(
            "delete_device_credential", "Revoke a refresh token, or delete a public key, if it exists", ("delete:device_credentials",), 204
        ),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        kind = text_of(query, "type")
        if kind == _PUBLIC_KEY:
            return Response(answer_list(_named(_keys(), query, "client"), query, _LISTING, _key_resource))
        if kind not in _IS_ROTATING:
            raise invalid_query(f"Expected one of {', '.join(name for name in (_PUBLIC_KEY, *_IS_ROTATING) if name)}", "type")
        rows = _named(living_tokens().filter(**_IS_ROTATING[kind]), query, "application")
        return Response(answer_list(rows, query, _LISTING, _resource))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, KeyToRegister)
        token: Any = request.auth
        user_id = body.get("user_id", "") if token.is_machine else token.subject
        if not user_id or body.get("user_id", user_id) != user_id:
            raise invalid_body("Required for the token of a machine. With the token of a user, it must name that user", "user_id")
        key = register_device_key(
            tenant_id=self.tenant_id,
            user_id=user_id,
            client_id=body.get("client_id", token.client_id),
            device_name=body["device_name"],
            device_id=body["device_id"],
            public_key=body["value"],
        )
        return Response({"id": key.wire_id}, status=201)

    def destroy(self, request: Request, id: str) -> Response:
        if not _ID.fullmatch(id):
            raise invalid_path("Object didn't pass validation for format device-credential-id", "id")
        delete_device_key(tenant_id=self.tenant_id, wire_id=id)
        revoke_refresh_tokens(tenant_id=self.tenant_id, ids=[id])
        return Response(status=204)


def _named(rows: QuerySet[Row], query: Any, client: str) -> QuerySet[Row]:
    """Return the rows that match the user and the client of a query. `client` is the name of the field that refers to the client."""
    filters = {"user_id": "user__user_id", "client_id": f"{client}__client_id"}
    named = {column: value for name, column in filters.items() if (value := text_of(query, name))}
    return rows.filter(**named)


def _keys() -> QuerySet[DeviceKey]:
    return DeviceKey.objects.select_related("user", "client").order_by("pk")


def _key_resource(key: DeviceKey) -> dict[str, Any]:
    return {
        "id": key.wire_id,
        "device_name": key.device_name,
        "device_id": key.device_id,
        "type": _PUBLIC_KEY,
        "user_id": key.user.user_id,
        "client_id": key.client.client_id,
    }


def _resource(token: RefreshToken) -> dict[str, Any]:
    """Return the token as a device credential. Expects its user and its client to be loaded."""
    return {
        "id": token.wire_id,
        **({"device_name": token.initial_user_agent} if token.initial_user_agent else {}),
        "type": _ROTATING if token.is_rotating else "refresh_token",
        "user_id": token.user.user_id,
        "client_id": token.application.client_id,
    }
