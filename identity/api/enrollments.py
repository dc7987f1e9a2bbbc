"""Second factors that a user can log in with: `/users/{id}/enrollments`."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation, Schema
from identity.api.lookups import user_at

_NONE: Schema = {"type": "array", "maxItems": 0, "items": {"type": "object"}}


class EnrollmentEndpoint(Endpoint):
    """Second factors of a user. No login asks for one yet, so imported factors do not count as enrolled."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_user_enrollments", "List the second factors of a user", ("read:users",), 200, _NONE, refuses=(404,))
    }

    def list(self, request: Request, id: str) -> Response:
        user_at(id)
        return Response([])
