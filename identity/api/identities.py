"""Linking and unlinking: `/users/{id}/identities`."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.refusals import Refusal, not_supported
from identity.api.user_bodies import IdentityToLink
from identity.api.user_schemas import IDENTITIES
from identity.api.users import INEXISTENT_USER, check_user_id, user_resource
from identity.documents.user import profile_data
from identity.models import LinkedIdentity, User
from identity.services import users
from identity.services.failures import AlreadyExists, NotFound


class IdentityEndpoint(Endpoint):
    """The identities of one user, the primary identity first."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "link_user_identity", "Link another user to a user", ("update:users",), 201, IDENTITIES, IdentityToLink, refuses=(404, 409)
        ),
        "destroy": Operation(
            "unlink_user_identity", "Make a linked identity a separate user", ("update:users",), 200, IDENTITIES, refuses=(404, 409)
        ),
    }

    def create(self, request: Request, id: str) -> Response:
        check_user_id(id)
        body = self.body_of(request, IdentityToLink)
        if "link_with" in body:
            raise not_supported("Linking by ID token is not supported: name the secondary user by `provider` and `user_id`.")
        self._require_user(id)
        secondary_id = _user_id(body["provider"], body["user_id"])
        self._check_secondary(secondary_id, body.get("connection_id"))
        primary = users.link_users(tenant_id=self.tenant_id, primary_id=id, secondary_id=secondary_id)
        return Response(_identities(primary), status=201)

    def destroy(self, request: Request, id: str, provider: str, user_id: str) -> Response:
        check_user_id(id)
        self._require_user(id)
        primary = users.unlink_identity(tenant_id=self.tenant_id, user_id=id, provider=provider, identifier=user_id)
        left = _identities(primary)
        # In a user document, the entry of the primary identity has `profileData` only while another identity is linked. Client programs
        # expect `profileData` in this response even if no other identity is linked any more, so add it.
        return Response([{**left[0], "profileData": profile_data(primary)}, *left[1:]])

    def _require_user(self, user_id: str) -> None:
        if not User.objects.filter(user_id=user_id).exists():
            raise Refusal(404, "The user does not exist.", INEXISTENT_USER)

    def _check_secondary(self, secondary_id: str, connection_id: str | None) -> None:
        provider, _, identifier = secondary_id.partition("|")
        if LinkedIdentity.objects.filter(provider=provider, identifier=identifier).exists():
            raise AlreadyExists("The identity is already linked.")
        secondary = User.objects.filter(user_id=secondary_id)
        if connection_id is not None and not secondary.filter(connection=connection_id).exists():
            raise NotFound("The connection has no such user.")


def _user_id(provider: str, sent: str) -> str:
    """Return the complete id of a user. `sent` may be complete or lack the provider."""
    return sent if sent.startswith(f"{provider}|") else f"{provider}|{sent}"


def _identities(user: User) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = user_resource(user)["identities"]
    return found
