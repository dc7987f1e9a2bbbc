"""Second factors that a user can log in with: `/users/{id}/enrollments`."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.operations import TEXT, TIME, Operation, Schema
from foundation.timestamps import wire_time
from identity.api.lookups import user_at
from identity.factors.user_factors import factors_of
from identity.models import EnrolledFactor

Kind = EnrolledFactor.Kind
# Older clients support two kinds of factors, under these names. Other kinds have their own names.
_METHODS = {Kind.TOTP: "authenticator", Kind.PHONE: "sms"}
_READABLE = 4
_ENROLLMENTS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("id", "status", "type", "name", "identifier", "phone_number", "auth_method"), TEXT),
            **dict.fromkeys(("enrolled_at", "last_auth"), TIME),
        },
    },
}


class EnrollmentEndpoint(Endpoint):
    """Second factors of a user. Passkeys and the recovery code are not included. Shows only the last digits of a phone number, and only the
    first two characters and the domain of an email address."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("list_user_enrollments", "List the second factors of a user", ("read:users",), 200, _ENROLLMENTS, refuses=(404,))
    }

    def list(self, request: Request, id: str) -> Response:
        return Response([_enrollment(factor) for factor in factors_of(user_at(id))])


def _enrollment(factor: EnrolledFactor) -> dict[str, Any]:
    shown = _masked(factor)
    name = factor.name or shown
    return {
        "id": factor.device,
        "status": "confirmed",
        "type": factor.kind,
        **({"name": name} if name else {}),
        **({"identifier": shown} if shown else {}),
        **({"phone_number": shown} if factor.kind == Kind.PHONE else {}),
        "auth_method": _METHODS.get(Kind(factor.kind), factor.kind),
        "enrolled_at": wire_time(factor.created_at),
        **({"last_auth": wire_time(factor.last_used_at)} if factor.last_used_at else {}),
    }


def _masked(factor: EnrolledFactor) -> str:
    if factor.kind == Kind.PHONE:
        return "X" * (len(factor.address) - _READABLE) + factor.address[-_READABLE:]
    name, at, domain = factor.address.partition("@")
    return f"{name[:2]}{'*' * max(0, len(name) - 2)}{at}{domain}"
