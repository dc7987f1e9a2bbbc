"""Refresh tokens without their values: `/refresh-tokens`, `/refresh-tokens/{id}`, `/users/{id}/refresh-tokens`."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import F, Q, QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.accounts.access import update_refresh_token_metadata
from authapi.api.clients import INEXISTENT_CLIENT, client_at
from authapi.api.sessions import MOST_METADATA
from authapi.api.sign_in_documents import refresh_token_resource
from authapi.api.sign_in_schemas import (
    ACCEPTED,
    REFRESH_TOKEN,
    REFRESH_TOKEN_FIELDS,
    REFRESH_TOKEN_PARAMETERS,
    REFRESH_TOKENS,
    TOKENS_OF_USER,
)
from authapi.models import RefreshToken
from authapi.tokens.revocation import revoke_refresh_tokens
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, JsonObject, ListOf, Text
from foundation.api.list_schemas import TAKE_FORM
from foundation.api.operations import Operation
from foundation.api.paging import Listing, answer_list
from foundation.api.queries import text_of
from foundation.api.refusals import Refusal, invalid_body, invalid_query
from identity.api.lookups import user_at
from identity.api.relation_bodies import user_id
from identity.services.failures import NotFound

_MOST_IDS = 100


class RefreshTokenToChange(Closed):
    refresh_token_metadata = JsonObject(required=False, allow_null=True, most=MOST_METADATA)


class RefreshTokensToRevoke(Closed):
    """Selects tokens by their ids; or by user, by client, or by user and client together. A selection without ids can be limited to one
    API."""

    ids = ListOf(required=False, child=Text(max_length=30), min_length=1, max_length=_MOST_IDS)
    user_id = user_id(required=False)
    client_id = Text(required=False, max_length=64)
    audience = Text(required=False, max_length=600)


class RefreshTokenEndpoint(Endpoint):
    """Refresh tokens of users."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_refresh_tokens",
            "List the refresh tokens of a user",
            ("read:refresh_tokens",),
            200,
            REFRESH_TOKENS,
            parameters=REFRESH_TOKEN_PARAMETERS,
        ),
        "retrieve": Operation("get_refresh_token", "Read a refresh token", ("read:refresh_tokens",), 200, REFRESH_TOKEN, refuses=(404,)),
        "partial_update": Operation(
            "update_refresh_token",
            "Change the metadata of a refresh token",
            ("update:refresh_tokens",),
            200,
            REFRESH_TOKEN,
            RefreshTokenToChange,
            refuses=(404,),
        ),
        "destroy": Operation("delete_refresh_token", "Revoke a refresh token", ("delete:refresh_tokens",), 202, ACCEPTED, refuses=(404,)),
    }

    def list(self, request: Request) -> Response:
        query = request.query_params
        user_id, client_id = text_of(query, "user_id"), text_of(query, "client_id")
        if user_id is None:
            raise invalid_query("Missing required property", "user_id")
        rows = living_tokens().filter(user__user_id=user_id)
        if client_id:
            rows = rows.filter(application__client_id=client_id)
        return Response(answer_list(rows, query, Listing("refresh_tokens", REFRESH_TOKEN_FIELDS, only_take=True), refresh_token_resource))

    def retrieve(self, request: Request, id: str) -> Response:
        return Response(refresh_token_resource(_token_at(id)))

    def partial_update(self, request: Request, id: str) -> Response:
        body = self.body_of(request, RefreshTokenToChange)
        if not body:
            raise invalid_body("Too few properties defined (0), minimum 1", "body")
        update_refresh_token_metadata(
            tenant_id=self.tenant_id, wire_id=_token_at(id).wire_id, metadata=body["refresh_token_metadata"] or {}
        )
        return Response(refresh_token_resource(_token_at(id)))

    def destroy(self, request: Request, id: str) -> Response:
        revoke_refresh_tokens(tenant_id=self.tenant_id, ids=[_token_at(id).wire_id])
        return Response({}, status=202)


class RefreshTokenRevocationEndpoint(Endpoint):
    """Revokes many refresh tokens at once."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "revoke_refresh_tokens",
            "Revoke refresh tokens by id, or all tokens of a user, of a client, or of a user at a client",
            ("delete:refresh_tokens",),
            202,
            ACCEPTED,
            RefreshTokensToRevoke,
            refuses=(404,),
        )
    }

    def create(self, request: Request) -> Response:
        body = self.body_of(request, RefreshTokensToRevoke)
        if "ids" in body and len(body) > 1:
            raise invalid_body("Send either ids, or user_id, client_id and audience", "ids")
        if not body.keys() & {"ids", "user_id", "client_id"}:
            raise invalid_body("Missing required property: one of ids, user_id and client_id", "body")
        revoke_refresh_tokens(tenant_id=self.tenant_id, **_chosen(body))
        return Response({}, status=202)


class UserRefreshTokenEndpoint(Endpoint):
    """The refresh tokens of a user."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_user_refresh_tokens",
            "List the refresh tokens of a user",
            ("read:refresh_tokens",),
            200,
            TOKENS_OF_USER,
            parameters=TAKE_FORM,
            refuses=(404,),
        ),
        "destroy": Operation(
            "delete_user_refresh_tokens", "Revoke all refresh tokens of a user", ("delete:refresh_tokens",), 202, ACCEPTED, refuses=(404,)
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        rows = living_tokens().filter(user=user_at(id))
        return Response(
            answer_list(rows, request.query_params, Listing("tokens", REFRESH_TOKEN_FIELDS, only_take=True), refresh_token_resource)
        )

    def destroy(self, request: Request, id: str) -> Response:
        revoke_refresh_tokens(tenant_id=self.tenant_id, user_id=user_at(id).pk)
        return Response({}, status=202)


def living_tokens() -> QuerySet[RefreshToken]:
    """Return the usable tokens, annotated with `created_at`, the sort column of lists. The OAuth toolkit names the column `created`."""
    now = timezone.now()
    unexpired = (Q(expires_at=None) | Q(expires_at__gt=now)) & (Q(idle_expires_at=None) | Q(idle_expires_at__gt=now))
    return RefreshToken.objects.filter(unexpired, revoked=None).select_related("user", "application").annotate(created_at=F("created"))


def _token_at(wire_id: str) -> RefreshToken:
    token = living_tokens().filter(wire_id=wire_id).first()
    if token is None:
        raise NotFound("The refresh token does not exist.")
    return token


def _chosen(body: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that select the tokens to revoke. Raises 404 if the named user or client does not exist."""
    chosen: dict[str, Any] = {name: body[name] for name in ("ids", "audience") if name in body}
    if "user_id" in body:
        chosen["user_id"] = user_at(body["user_id"]).pk
    if "client_id" in body:
        try:
            chosen["client_id"] = client_at(body["client_id"]).client_id
        except NotFound as error:
            raise Refusal(404, str(error), INEXISTENT_CLIENT) from error
    return chosen
