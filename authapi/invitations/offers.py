"""Creates, mails again, renews and revokes invitations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import models
from django.utils import timezone

from authapi.invitations.links import login_route
from authapi.invitations.mails import start_mail
from authapi.login.connections import client_connections
from authapi.login.organizations import connections_within, usage_of
from authapi.models import Client, Invitation
from foundation.database.transactions import unit_of_work
from identity.models import Connection, Organization
from identity.services.failures import Conflict, Invalid, NotFound
from identity.services.organizations import locked_organization
from identity.services.roles import roles_named
from identity.services.saving import validated_save

# Contract, "invitations": a week by default, at most 30 days.
LIFE_SECONDS = 604_800
MOST_LIFE_SECONDS = 2_592_000
MOST_ROLES = 50
# These numbers limit open invitations and mails, so that an organization cannot flood a mailbox.
_MOST_OPEN = 10
_MOST_MAILS = 10
_BETWEEN_MAILS = timedelta(minutes=1)
# A line break would let a name add lines to the mail. Direction marks would let a name reverse text.
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# The error text of the upstream system, without the URL of the documentation at its end.
_NO_ROUTE = (
    "A default login route is required to generate the invitation url. Set initiate_login_uri at the application or "
    "default_redirection_uri at the tenant."
)


@dataclass(frozen=True)
class NewInvitation:
    """A requested invitation. `client_id` is the application to whose login URL the invitation leads."""

    inviter_name: str
    email: str
    client_id: str
    connection_id: str = ""
    roles: Sequence[str] = ()
    user_metadata: Mapping[str, Any] = field(default_factory=dict)
    app_metadata: Mapping[str, Any] = field(default_factory=dict)
    life_seconds: int = LIFE_SECONDS
    language: str = ""
    is_mailed: bool = True


class InvitationNotFound(NotFound):
    """The invitation does not exist."""


@unit_of_work
def create_invitation(*, tenant_id: str, organization_id: str, wanted: NewInvitation, address: str = "") -> Invitation:
    """Create an invitation and, if requested, queue its mail.

    Raises `NotFound` for an organization, application, connection or role that does not exist. Raises `Invalid` for invalid values. Raises
    `Conflict` if the email address has too many open invitations to the organization.
    """
    organization = locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    client = _client(tenant_id, wanted.client_id)
    connection = _connection(organization, client, wanted.connection_id) if wanted.connection_id else None
    roles = roles_named(tenant_id=tenant_id, role_ids=wanted.roles, organization_id=organization.pk)
    _check(client, wanted)
    if open_invitations(organization).filter(email=wanted.email.lower()).count() >= _MOST_OPEN:
        raise Conflict(f"The address has {_MOST_OPEN} open invitations to this organization. Revoke one of these invitations first.")
    invitation = Invitation(
        tenant_id=tenant_id,
        organization=organization,
        client=client,
        connection=connection,
        inviter_name=wanted.inviter_name,
        email=wanted.email.lower(),
        roles=[role.pk for role in roles],
        user_metadata=dict(wanted.user_metadata),
        app_metadata=dict(wanted.app_metadata),
        language=wanted.language,
        life_seconds=wanted.life_seconds,
        expires_at=timezone.now() + timedelta(seconds=wanted.life_seconds),
    )
    invitation.renew_ticket()
    validated_save(invitation)
    if wanted.is_mailed:
        start_mail(invitation, address=address)
    return invitation


@unit_of_work
def resend_invitation(*, tenant_id: str, organization_id: str, invitation_id: str, address: str = "") -> Invitation:
    """Mail an invitation again. A pending invitation keeps its ticket. An expired invitation gets a new ticket and a new period.

    Raises `InvitationNotFound` for an accepted or revoked invitation, and `Conflict` for too many mails.
    """
    invitation = _locked(tenant_id, organization_id, invitation_id)
    now = timezone.now()
    if invitation.mail_count >= _MOST_MAILS:
        raise Conflict(f"The invitation was mailed {_MOST_MAILS} times. Create a new invitation.")
    if invitation.mailed_at is not None and now - invitation.mailed_at < _BETWEEN_MAILS:
        raise Conflict("The invitation was mailed less than a minute ago.")
    if invitation.state_at(now) is Invitation.State.EXPIRED:
        _renew(invitation)
    start_mail(invitation, address=address)
    return invitation


@unit_of_work
def renew_invitation(*, tenant_id: str, organization_id: str, invitation_id: str) -> Invitation:
    """Give an invitation a new ticket and a new period. All earlier links become invalid, including links in mails.

    Raises `InvitationNotFound` for an accepted or revoked invitation.
    """
    invitation = _locked(tenant_id, organization_id, invitation_id)
    _renew(invitation)
    return invitation


@unit_of_work
def revoke_invitation(*, tenant_id: str, organization_id: str, invitation_id: str) -> Invitation:
    """Revoke an invitation, so that its links no longer work. Raises `InvitationNotFound` for an accepted or revoked invitation."""
    invitation = _locked(tenant_id, organization_id, invitation_id)
    invitation.revoked_at, invitation.sealed_ticket = timezone.now(), ""
    invitation.save(update_fields=["revoked_at", "sealed_ticket", "updated_at"])
    return invitation


def offered(rows: models.QuerySet[Invitation]) -> models.QuerySet[Invitation]:
    """Return the invitations that are neither accepted nor revoked, also those that have expired."""
    return rows.filter(accepted_at__isnull=True, revoked_at__isnull=True)


def open_invitations(organization: Organization) -> models.QuerySet[Invitation]:
    """Return the open invitations to an organization: the invitations that a user can still accept."""
    rows = Invitation.objects.of(organization.tenant_id).filter(organization=organization, expires_at__gt=timezone.now())
    return offered(rows)


def _locked(tenant_id: str, organization_id: str, invitation_id: str) -> Invitation:
    # Lock the organization first, as in `accept_invitation`.
    organization = locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    rows = offered(Invitation.objects.of(tenant_id)).filter(organization=organization, pk=invitation_id)
    invitation = rows.select_related("client", "organization").select_for_update(no_key=True, of=("self",)).first()
    if invitation is None:
        raise InvitationNotFound
    return invitation


def _renew(invitation: Invitation) -> None:
    invitation.renew_ticket()
    invitation.mail_digest = ""
    invitation.expires_at = timezone.now() + timedelta(seconds=invitation.life_seconds)
    invitation.save(update_fields=["digest", "sealed_ticket", "mail_digest", "expires_at", "updated_at"])


def _client(tenant_id: str, client_id: str) -> Client:
    client = Client.objects.of(tenant_id).filter(client_id=client_id, revoked_at__isnull=True).first()
    if client is None:
        raise NotFound("The client does not exist.")
    return client


def _connection(organization: Organization, client: Client, connection_id: str) -> Connection:
    connection = Connection.objects.of(organization.tenant_id).filter(pk=connection_id).first()
    if connection is None:
        raise NotFound("The connection does not exist.")
    if connection not in connections_within(organization, client_connections(client)):
        raise Invalid({"connection_id": ["The connection is not enabled for the organization and the application"]})
    return connection


def _check(client: Client, wanted: NewInvitation) -> None:
    problems: dict[str, list[str]] = {}
    if usage_of(client) == "deny":
        problems["client_id"] = ["The application does not allow logins to organizations. Set its organization_usage"]
    elif not login_route(client):
        problems["client_id"] = [_NO_ROUTE]
    if not wanted.inviter_name.strip() or _UNFIT.search(wanted.inviter_name):
        problems["inviter"] = ["The name of the inviter must be one line of text"]
    if not 0 < wanted.life_seconds <= MOST_LIFE_SECONDS:
        problems["ttl_sec"] = [f"Between 1 and {MOST_LIFE_SECONDS} seconds"]
    if len(wanted.roles) > MOST_ROLES:
        problems["roles"] = [f"At most {MOST_ROLES} roles"]
    if problems:
        raise Invalid(problems)
