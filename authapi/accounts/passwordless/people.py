"""Finds the user of a proven email address or phone number, creates the user if allowed, and marks the address as verified."""

from __future__ import annotations

from typing import Any

from django.db.models import Value
from django.db.models.fields.json import KT
from django.db.models.functions import Lower

from authapi.accounts.passwordless.addresses import Address, Channel
from identity.models import Connection, LinkedIdentity, User
from identity.services.users import create_user, update_user


def user_at(connection: Connection, address: Address) -> User | None:
    """Return the user of the connection who has this email address or phone number, or whose linked identity has it. Return None if no user
    is found.

    Never returns an account of another connection, even if that account has the same address. Both queries always run, so that the time
    does not reveal which query matched.
    """
    users = User.objects.of(connection.tenant_id).select_related("connection")
    user: User | None
    identity: LinkedIdentity | None
    identities = LinkedIdentity.objects.of(connection.tenant_id).select_related("user__connection").filter(connection=connection)
    if address.channel is Channel.EMAIL:
        wanted = Lower(Value(address.value))
        user = users.alias(key=Lower("email")).filter(connection=connection, key=wanted).first()
        identity = identities.alias(key=Lower(KT("profile_data__email"))).filter(key=wanted).order_by("pk").first()
    else:
        user = users.filter(connection=connection, phone_number=address.value).first()
        identity = identities.alias(key=KT("profile_data__phone_number")).filter(key=address.value).order_by("pk").first()
    return user or (identity.user if identity is not None else None)


def new_user_at(connection: Connection, address: Address) -> User:
    """Create the user of an email address or phone number that was just proven. Raises the errors of `create_user`."""
    profile: dict[str, Any] = {address.field: address.value, address.proof_field: True}
    return create_user(tenant_id=connection.tenant_id, connection=connection, **profile)


def mark_proven(user: User, connection: Connection, address: Address) -> User:
    """If the proven address belongs to the primary identity of the user, mark the address as verified, and record the event. The address of
    a linked identity is not marked."""
    is_primary = user.connection_id == connection.pk and (getattr(user, address.field) or "").lower() == address.value
    if not is_primary or getattr(user, address.proof_field):
        return user
    return update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={address.proof_field: True})
