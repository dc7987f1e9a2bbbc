"""What devices hold to stay logged in: `/device-credentials`, `/device-credentials/{id}`. These are refresh tokens, never their values."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.refresh_tokens import living_tokens
from authapi.api.sign_in_schemas import DEVICE_CREDENTIAL_FIELDS, DEVICE_CREDENTIAL_PARAMETERS, DEVICE_CREDENTIALS
from authapi.models import RefreshToken
from authapi.tokens.revocation import revoke_refresh_tokens
from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import text_of
from foundation.api.refusals import invalid_path, invalid_query

_FILTERS = {"user_id": "user__user_id", "client_id": "application__client_id"}
_ROTATING = "rotating_refresh_token"
# Which tokens each type has; no client can make a public key. Without a type the rotating ones are left out, as clients expect.
_IS_ROTATING: dict[str | None, dict[str, Any]] = {
    None: {"is_rotating": False},
    "refresh_token": {"is_rotating": False},
    _ROTATING: {"is_rotating": True},
    "public_key": {"pk__in": ()},
}
_ID = re.compile("dcr_[A-Za-z0-9]{16}|rt_[A-Za-z0-9]{22}")


class DeviceCredentialEndpoint(Endpoint):
    """Refresh tokens by the device that holds them."""

    path_schemas: ClassVar[dict[str, Any]] = {"id": {"pattern": f"^(?:{_ID.pattern})$"}}
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_device_credentials",
            "List the refresh tokens that devices hold",
            ("read:device_credentials",),
            200,
            DEVICE_CREDENTIALS,
            parameters=DEVICE_CREDENTIAL_PARAMETERS,
        ),
        "destroy": Operation("delete_device_credential", "End a refresh token, if it is there", ("delete:device_credentials",), 204),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        kind = text_of(query, "type")
        if kind not in _IS_ROTATING:
            raise invalid_query(f"Expected one of {', '.join(name for name in _IS_ROTATING if name)}", "type")
        rows = living_tokens().filter(**_IS_ROTATING[kind])
        for name, column in _FILTERS.items():
            value = text_of(query, name)
            if value:
                rows = rows.filter(**{column: value})
        return Response(answer_list(rows, query, Listing("device_credentials", DEVICE_CREDENTIAL_FIELDS), _resource))

    def destroy(self, request: Request, id: str) -> Response:
        if not _ID.fullmatch(id):
            raise invalid_path("Object didn't pass validation for format device-credential-id", "id")
        revoke_refresh_tokens(tenant_id=self.tenant_id, ids=[id])
        return Response(status=204)


def _resource(token: RefreshToken) -> dict[str, Any]:
    """Return the token as a device credential; it needs its user and its client."""
    return {
        "id": token.wire_id,
        **({"device_name": token.initial_user_agent} if token.initial_user_agent else {}),
        "type": _ROTATING if token.is_rotating else "refresh_token",
        "user_id": token.user.user_id,
        "client_id": token.application.client_id,
    }
