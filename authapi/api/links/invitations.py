"""Invitations to an organization: `/organizations/{id}/invitations` and the paths below it."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.clients import INEXISTENT_CLIENT
from authapi.api.links.invitation_schemas import (
    INVITATION,
    INVITATION_FIELDS,
    INVITATION_PARAMETERS,
    INVITATIONS,
    InvitationToCreate,
    invitation_resource,
)
from authapi.invitations import offers
from authapi.invitations.offers import LIFE_SECONDS, InvitationNotFound, NewInvitation
from authapi.models import Client, Invitation
from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import PROJECTION
from foundation.api.operations import Operation
from foundation.api.paging import Listing, Order, answer_list, order_of
from foundation.api.queries import projection_of, text_of
from foundation.api.refusals import Refusal
from identity.api.lookups import organization_at
from identity.api.requested import base_of
from identity.models import Organization

_LISTING = Listing("invitations", INVITATION_FIELDS)
_NEWEST_FIRST = Order(is_descending=True)
_READ, _CREATE, _DELETE = (f"{verb}:organization_invitations" for verb in ("read", "create", "delete"))


class InvitationEndpoint(Endpoint):
    """Invitations that were neither accepted nor revoked, including expired invitations."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_organization_invitations",
            "List the invitations to an organization",
            (_READ,),
            200,
            INVITATIONS,
            parameters=INVITATION_PARAMETERS,
            refuses=(404,),
        ),
        "create": Operation(
            "create_organization_invitation",
            "Invite a user to an organization",
            (_CREATE,),
            201,
            INVITATION,
            InvitationToCreate,
            refuses=(404, 409),
        ),
        "retrieve": Operation(
            "get_organization_invitation",
            "Read an invitation to an organization",
            (_READ,),
            200,
            INVITATION,
            parameters=PROJECTION,
            refuses=(404,),
        ),
        "destroy": Operation(
            "delete_organization_invitation",
            "Revoke an invitation to an organization",
            (_DELETE,),
            204,
            refuses=(404,),
        ),
    }

    def list(self, request: Request, id: str) -> Response:
        query = request.query_params
        order = order_of(query, {"created_at": "created_at"}) if text_of(query, "sort") else _NEWEST_FIRST
        return Response(answer_list(_offered(organization_at(id)), query, _LISTING, invitation_resource, order=order))

    def create(self, request: Request, id: str) -> Response:
        body = self.body_of(request, InvitationToCreate)
        if not Client.objects.filter(client_id=body["client_id"], revoked_at__isnull=True).exists():
            raise Refusal(404, "The client does not exist.", INEXISTENT_CLIENT)
        invitation = offers.create_invitation(tenant_id=self.tenant_id, organization_id=id, wanted=_wanted(body), address=base_of(request))
        return Response(invitation_resource(invitation), status=201)

    def retrieve(self, request: Request, id: str, invitation_id: str) -> Response:
        project = projection_of(request.query_params, INVITATION_FIELDS)
        invitation = _offered(organization_at(id)).filter(pk=invitation_id).first()
        if invitation is None:
            raise _missing()
        return Response(project(invitation_resource(invitation)))

    def destroy(self, request: Request, id: str, invitation_id: str) -> Response:
        try:
            offers.revoke_invitation(tenant_id=self.tenant_id, organization_id=id, invitation_id=invitation_id)
        except InvitationNotFound as error:
            raise _missing() from error
        return Response(status=204)


class InvitationMailEndpoint(Endpoint):
    """Mails an invitation again."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "resend_organization_invitation",
            "Mail an invitation again; an expired invitation becomes valid again",
            (_CREATE,),
            200,
            INVITATION,
            refuses=(404, 409),
        ),
    }

    def create(self, request: Request, id: str, invitation_id: str) -> Response:
        try:
            invitation = offers.resend_invitation(
                tenant_id=self.tenant_id, organization_id=id, invitation_id=invitation_id, address=base_of(request)
            )
        except InvitationNotFound as error:
            raise _missing() from error
        return Response(invitation_resource(invitation))


def _offered(organization: Organization) -> QuerySet[Invitation]:
    rows = Invitation.objects.filter(organization=organization).select_related("client", "organization")
    return offers.offered(rows)


def _wanted(body: dict[str, Any]) -> NewInvitation:
    return NewInvitation(
        inviter_name=body["inviter"]["name"],
        email=body["invitee"]["email"],
        client_id=body["client_id"],
        connection_id=body.get("connection_id", ""),
        roles=body.get("roles", []),
        user_metadata=body.get("user_metadata", {}),
        app_metadata=body.get("app_metadata", {}),
        life_seconds=body.get("ttl_sec") or LIFE_SECONDS,
        is_mailed=body.get("send_invitation_email", True),
    )


def _missing() -> Refusal:
    return Refusal(404, "The invitation does not exist.", "inexistent_invitation")
