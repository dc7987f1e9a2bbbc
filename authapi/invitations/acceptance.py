"""Accepts an invitation, once, for the user with the invited email address. Adds membership, roles and metadata in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from authapi.models import Client, Invitation
from authapi.services import sign_in_log
from foundation.database.transactions import unit_of_work
from identity.models import Connection, Organization, Role, User
from identity.services.failures import ServiceError
from identity.services.memberships import add_members, assign_member_roles
from identity.services.organizations import locked_organization
from identity.services.users import locked_user, update_user

_SUCCESS, _FAILURE = "si", "fi"


class InvitationOver(ServiceError):
    """The invitation was accepted, revoked or renewed, or it has expired."""


class InvitationOfAnother(ServiceError):
    """The invitation is for another email address or another connection."""


class AddressUnproven(ServiceError):
    """The email address of the account is not verified."""


@dataclass(frozen=True)
class Guest:
    """The user who accepts. `has_proven_mailbox`: the user has just logged in, in the browser that opened the mailed link."""

    user: User
    connection: Connection
    has_proven_mailbox: bool = False
    ip: str = ""
    user_agent: str = ""


def is_addressed_to(invitation: Invitation, user: User) -> bool:
    """Tell whether the invitation is for the email address of this user."""
    return bool(user.email) and (user.email or "").lower() == invitation.email.lower()


@unit_of_work
def accept_invitation(invitation: Invitation, guest: Guest) -> Invitation:
    """Make the user a member with the roles of the invitation that still exist. Idempotent for the same user.

    1. Lock the user, the organization and the invitation. 2. Repeat all checks, because the rows may have changed since the page was shown.
    3. Add the member and the roles. 4. Set metadata if the user is newer than the invitation. 5. Mark the invitation as accepted.

    If the mailed link has proven the mailbox, the email address of a database user becomes verified. Raises `InvitationOver`,
    `InvitationOfAnother`, `AddressUnproven`, or `NotFound` for a deleted user or organization.
    """
    tenant_id = invitation.tenant_id
    user = locked_user(tenant_id=tenant_id, user_id=guest.user.user_id)
    organization = locked_organization(tenant_id=tenant_id, organization_id=invitation.organization_id)
    row = _locked(invitation)
    if row.accepted_by_id == user.pk:
        return row
    _refuse(invitation, row, user, guest)
    add_members(tenant_id=tenant_id, organization_id=organization.pk, user_ids=[user.user_id])
    roles = _roles_left(row, organization)
    if roles:
        assign_member_roles(tenant_id=tenant_id, organization_id=organization.pk, user_id=user.user_id, role_ids=roles)
    changes = _changes(row, user)
    if changes:
        update_user(tenant_id=tenant_id, user_id=user.user_id, changes=changes)
    row.accepted_at, row.accepted_by, row.sealed_ticket = timezone.now(), user, ""
    row.save(update_fields=["accepted_at", "accepted_by", "sealed_ticket", "updated_at"])
    _note(_SUCCESS, row, guest)
    return row


def note_failure(invitation: Invitation, guest: Guest, problem: ServiceError) -> None:
    """Write a line to the sign-in log with the reason why an invitation was not accepted."""
    _note(_FAILURE, invitation, guest, str(problem))


def _locked(invitation: Invitation) -> Invitation:
    rows = Invitation.objects.of(invitation.tenant_id).select_related("client").select_for_update(no_key=True, of=("self",))
    row = rows.filter(pk=invitation.pk).first()
    if row is None:
        raise InvitationOver
    return row


def _refuse(invitation: Invitation, row: Invitation, user: User, guest: Guest) -> None:
    # A renewed invitation has another ticket than the ticket that started this login.
    is_same = row.digest == invitation.digest
    if not is_same or row.state_at(timezone.now()) is not Invitation.State.PENDING or user.blocked:
        raise InvitationOver
    if not is_addressed_to(row, user) or row.connection_id not in (None, guest.connection.pk):
        raise InvitationOfAnother
    if not (user.email_verified or guest.has_proven_mailbox):
        raise AddressUnproven


def _roles_left(row: Invitation, organization: Organization) -> list[str]:
    """Return the roles that can still be assigned. A role deleted in the meantime does not prevent acceptance."""
    roles = Role.objects.of(row.tenant_id).filter(pk__in=row.roles, deletion_started_at__isnull=True)
    return [role.pk for role in roles.order_by("pk") if role.organization_id in (None, organization.pk)]


def _changes(row: Invitation, user: User) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if not user.email_verified and user.connection.is_database:
        changes["email_verified"] = True
    if user.created_at > row.created_at:
        changes |= {name: value for name in ("user_metadata", "app_metadata") if (value := getattr(row, name))}
    return changes


def _note(code: str, row: Invitation, guest: Guest, description: str = "") -> None:
    client: Client = row.client
    sign_in_log.note(
        tenant_id=row.tenant_id,
        type=code,
        is_success=not description,
        description=description,
        user=guest.user,
        client=client,
        connection=guest.connection.name,
        ip=guest.ip,
        user_agent=guest.user_agent,
        details={"invitation_id": row.pk, "organization_id": row.organization_id},
    )
