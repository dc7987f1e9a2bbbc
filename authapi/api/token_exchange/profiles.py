"""Token exchange profiles: `/token-exchange-profiles` and the paths below it."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.token_exchange.bodies import (
    PROFILE,
    PROFILE_FIELDS,
    PROFILE_PARAMETERS,
    PROFILES,
    ExchangeProfileToChange,
    ExchangeProfileToCreate,
    columns_of,
    profile_resource,
)
from authapi.models import TokenExchangeProfile
from authapi.services.token_exchange import create_profile, delete_profile, update_profile
from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.refusals import invalid_body, not_supported
from identity.services.failures import NotFound

_LISTING = Listing("token_exchange_profiles", PROFILE_FIELDS, only_take=True)
_READ, _CREATE, _UPDATE, _DELETE = (f"{verb}:token_exchange_profiles" for verb in ("read", "create", "update", "delete"))
_NO_ACTIONS = "This service runs no tenant code to check subject tokens: send `subject_token` and `user` instead of `action_id`."


class TokenExchangeProfileEndpoint(Endpoint):
    """Rules by which clients can exchange a token of another issuer for a token of this service."""

    not_found_code = "inexistent_token_exchange_profile"
    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_token_exchange_profiles", "List token exchange profiles", (_READ,), 200, PROFILES, parameters=PROFILE_PARAMETERS
        ),
        "create": Operation(
            "create_token_exchange_profile",
            "Create a token exchange profile for tokens of another issuer",
            (_CREATE,),
            201,
            PROFILE,
            ExchangeProfileToCreate,
            refuses=(409,),
        ),
        "retrieve": Operation("get_token_exchange_profile", "Read a token exchange profile", (_READ,), 200, PROFILE, refuses=(404,)),
        "partial_update": Operation(
            "update_token_exchange_profile",
            "Change a token exchange profile; the objects `subject_token` and `user` are replaced as a whole, not merged",
            (_UPDATE,),
            200,
            PROFILE,
            ExchangeProfileToChange,
            refuses=(404, 409),
        ),
        "destroy": Operation("delete_token_exchange_profile", "Delete a token exchange profile if it exists", (_DELETE,), 204),
    }

    def list(self, request: Request) -> Response:
        return Response(answer_list(TokenExchangeProfile.objects.all(), request.query_params, _LISTING, profile_resource))

    def create(self, request: Request) -> Response:
        body = self.body_of(request, ExchangeProfileToCreate)
        if "action_id" in body:
            raise not_supported(_NO_ACTIONS)
        missing = next((name for name in ("subject_token", "user") if name not in body), None)
        if missing is not None:
            raise invalid_body("Missing required property", missing)
        profile = create_profile(tenant_id=self.tenant_id, **columns_of(body))
        return Response(profile_resource(profile), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(profile_resource(_profile_at(id)))

    def partial_update(self, request: Request, id: str) -> Response:
        body = self.body_of(request, ExchangeProfileToChange)
        if not body:
            raise invalid_body("Too few properties defined, minimum 1", "body")
        return Response(profile_resource(update_profile(tenant_id=self.tenant_id, profile_id=id, changes=columns_of(body))))

    def destroy(self, request: Request, id: str) -> Response:
        try:
            delete_profile(tenant_id=self.tenant_id, profile_id=id)
        except NotFound:
            # Deleting is idempotent: clients repeat a request whose response was lost.
            return Response(status=204)
        return Response(status=204)


def _profile_at(profile_id: str) -> TokenExchangeProfile:
    profile = TokenExchangeProfile.objects.filter(pk=profile_id).first()
    if profile is None:
        raise NotFound("The token exchange profile does not exist.")
    return profile
