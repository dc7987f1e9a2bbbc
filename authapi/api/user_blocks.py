"""Blocks after failed logins: `/user-blocks?identifier=`, `/user-blocks/{id}`. Lifting a block does not change the user."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.accounts.user_blocks import blocks_of_identifier, blocks_of_user, lift_blocks_of_identifier, lift_blocks_of_user
from authapi.api.sign_in_documents import block_entry
from authapi.api.sign_in_schemas import BLOCKS, CONSIDER_ENABLEMENT, IDENTIFIER
from authapi.models import LoginFailures
from authapi.tenant_settings import sign_in_settings
from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.queries import switch_of, text_of
from foundation.api.refusals import invalid_query
from identity.api.lookups import user_at


class IdentifierBlockEndpoint(Endpoint):
    """Blocks of an identifier, whether a user with this identifier exists or not."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_blocks_by_identifier",
            "List the blocks of an identifier",
            ("read:users",),
            200,
            BLOCKS,
            parameters=(IDENTIFIER, CONSIDER_ENABLEMENT),
        ),
        "destroy": Operation(
            "delete_user_blocks_by_identifier", "Lift the blocks of an identifier", ("update:users",), 204, parameters=(IDENTIFIER,)
        ),
    }

    def list(self, request: Request) -> Response:
        return _answer(request, self.tenant_id, blocks_of_identifier(tenant_id=self.tenant_id, identifier=_identifier(request)))

    def destroy(self, request: Request) -> Response:
        lift_blocks_of_identifier(tenant_id=self.tenant_id, identifier=_identifier(request))
        return Response(status=204)


class UserBlockEndpoint(Endpoint):
    """Blocks of all identifiers of a user."""

    operations: ClassVar[dict[str, Operation]] = {
        "retrieve": Operation(
            "list_user_blocks",
            "List the blocks of a user",
            ("read:users",),
            200,
            BLOCKS,
            parameters=(CONSIDER_ENABLEMENT,),
            refuses=(404,),
        ),
        "destroy": Operation("delete_user_blocks", "Lift the blocks of a user", ("update:users",), 204, refuses=(404,)),
    }

    def retrieve(self, request: Request, id: str) -> Response:
        return _answer(request, self.tenant_id, blocks_of_user(user_at(id)))

    def destroy(self, request: Request, id: str) -> Response:
        lift_blocks_of_user(user_at(id))
        return Response(status=204)


def _answer(request: Request, tenant_id: str, blocks: list[LoginFailures]) -> Response:
    considers = switch_of(request.query_params, "consider_brute_force_enablement", default=False)
    if considers and not sign_in_settings(tenant_id).brute_force.blocks:
        blocks = []
    return Response({"blocked_for": [block_entry(row) for row in blocks]})


def _identifier(request: Request) -> str:
    identifier = text_of(request.query_params, "identifier")
    if identifier is None:
        raise invalid_query("Missing required property", "identifier")
    return identifier
