"""Request bodies and documents of invitations to organizations."""

from __future__ import annotations

from typing import Any

from authapi.invitations.links import application_address
from authapi.invitations.offers import MOST_LIFE_SECONDS, MOST_ROLES
from authapi.models import Invitation
from foundation.api.fields import Closed, Email, JsonObject, ListOf, Switch, Text
from foundation.api.list_schemas import LIST_FORMS, fields_of, list_of, reference, sort_parameter
from foundation.api.operations import TEXT, TIME, Schema
from foundation.timestamps import wire_time
from identity.api.job_bodies import WholeNumber
from identity.api.relation_bodies import Id, connection_id
from identity.api.user_bodies import AppMetadata

_OBJECT: Schema = {"type": "object", "additionalProperties": True}
_LONGEST_NAME = 300


class Inviter(Closed):
    name = Text(max_length=_LONGEST_NAME)


class Invitee(Closed):
    email = Email()


class InvitationToCreate(Closed):
    inviter = Inviter()
    invitee = Invitee()
    client_id = Text(max_length=64, help_text="The application. The invitation leads to its login URL.")
    connection_id = connection_id(required=False, help_text="The connection with which the user must log in to accept.")
    app_metadata = AppMetadata(required=False)
    user_metadata = JsonObject(required=False)
    ttl_sec = WholeNumber(
        required=False,
        min_value=0,
        max_value=MOST_LIFE_SECONDS,
        help_text="Lifetime of the invitation in seconds. 0 or absent: seven days.",
    )
    roles = ListOf(required=False, child=Id("rol_[A-Za-z0-9]{16}"), max_length=MOST_ROLES)
    send_invitation_email = Switch(required=False, help_text="Default: true.")


INVITATION = reference("Invitation")
INVITATIONS = list_of("invitations", INVITATION)
COMPONENTS: dict[str, Schema] = {
    # No member is required, because `fields` may leave out any member.
    "Invitation": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("id", "organization_id"), TEXT),
            "inviter": {"type": "object", "required": ["name"], "properties": {"name": TEXT}},
            "invitee": {"type": "object", "required": ["email"], "properties": {"email": TEXT}},
            "invitation_url": {
                **TEXT,
                "description": "Leads to the login URL of the application. Give the link only to the invited user.",
            },
            **dict.fromkeys(("created_at", "expires_at"), TIME),
            **dict.fromkeys(("client_id", "connection_id"), TEXT),
            **dict.fromkeys(("app_metadata", "user_metadata"), _OBJECT),
            "roles": {"type": "array", "items": TEXT},
            "ticket_id": {**TEXT, "description": "The value of the parameter `invitation` of `/authorize`."},
        },
    },
}
INVITATION_FIELDS = fields_of(COMPONENTS["Invitation"])
INVITATION_PARAMETERS = (*LIST_FORMS, sort_parameter("created_at"))


def invitation_resource(invitation: Invitation) -> dict[str, Any]:
    """Return the invitation. Expects its client and its organization to be loaded. Empty members are left out."""
    optional = {
        "invitation_url": application_address(invitation),
        "connection_id": invitation.connection_id,
        "app_metadata": invitation.app_metadata,
        "user_metadata": invitation.user_metadata,
        "roles": invitation.roles,
    }
    return {
        "id": invitation.pk,
        "organization_id": invitation.organization_id,
        "inviter": {"name": invitation.inviter_name},
        "invitee": {"email": invitation.email},
        "client_id": invitation.client.client_id,
        "ticket_id": invitation.ticket,
        "created_at": wire_time(invitation.created_at),
        "expires_at": wire_time(invitation.expires_at),
        **{name: value for name, value in optional.items() if value},
    }
