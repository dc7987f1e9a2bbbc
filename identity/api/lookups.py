"""Find the row whose id or name is in a path. Clients compare the error texts of this module, so the texts must not change."""

from __future__ import annotations

import re
from typing import Any

from rest_framework.request import Request

from foundation.api.paths import GROUP_ID
from foundation.api.refusals import Refusal, invalid_path
from identity.api.users import INEXISTENT_USER, check_user_id
from identity.models import Connection, Group, Organization, Role, User
from identity.services.failures import NotFound

NO_ORGANIZATION = "No organization found by that id or name."
_GROUP_ID = re.compile(GROUP_ID)


def user_at(user_id: str) -> User:
    """Return the user; 404 if it does not exist, 400 for an id that no user can have."""
    check_user_id(user_id)
    user = User.objects.filter(user_id=user_id).first()
    if user is None:
        raise Refusal(404, "The user does not exist.", INEXISTENT_USER)
    return user


def role_at(role_id: str) -> Role:
    """Return the role; 404 if it does not exist."""
    role = Role.objects.filter(pk=role_id).first()
    if role is None:
        raise Refusal(404, "The role does not exist.")
    return role


def group_at(group_id: str) -> Group:
    """Return the group; 404 if it does not exist, 400 for an id that no group can have."""
    check_group_id(group_id)
    group = Group.objects.filter(pk=group_id).first()
    if group is None:
        raise NotFound("The group does not exist.")
    return group


def check_group_id(group_id: str, name: str = "id") -> None:
    """Refuse a path id that no group can have."""
    if not _GROUP_ID.fullmatch(group_id):
        raise invalid_path("Object didn't pass validation for format group-id", name)


def organization_at(organization_id: str) -> Organization:
    """Return the organization; 404 if it does not exist."""
    organization = Organization.objects.filter(pk=organization_id).first()
    if organization is None:
        raise NotFound(NO_ORGANIZATION)
    return organization


def connection_at(connection_id: str) -> Connection:
    """Return the connection; 404 if it does not exist."""
    connection = Connection.objects.filter(pk=connection_id).first()
    if connection is None:
        raise Refusal(404, "The connection does not exist", "inexistent_connection")
    return connection


def scopes_of(request: Request) -> frozenset[str]:
    """Return the scopes of the access token of the request."""
    held: Any = request.auth
    return frozenset(held.scopes)


def short_user(user: User) -> dict[str, Any]:
    """Return the fields of a user for a list of the users of a role, a group or an organization."""
    shown = {name: getattr(user, name) for name in ("email", "name", "picture")}
    return {"user_id": user.user_id, **{name: value for name, value in shown.items() if value}}
