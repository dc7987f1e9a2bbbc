"""Create, change, block, delete, link and unlink users. Each call is one transaction, which first locks the users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import models
from django.db.models import Value
from django.db.models.functions import Lower
from django.utils import timezone

from foundation.database.transactions import lock_name, lock_rows, unit_of_work
from foundation.hooks import account_changed
from foundation.ids import new_hex_id
from identity.documents.user import profile_data
from identity.models import Connection, LinkedIdentity, User
from identity.services.deletions import refuse_if_being_deleted
from identity.services.failures import AlreadyExists, Invalid, NotFound, NotSupported
from identity.services.passwords import set_password
from identity.services.relations import delete_relations
from identity.services.saving import validated_save

PROFILE = (
    "email",
    "email_verified",
    "username",
    "phone_number",
    "phone_verified",
    "name",
    "nickname",
    "given_name",
    "family_name",
    "picture",
    "blocked",
    "user_metadata",
    "app_metadata",
)
METADATA = ("user_metadata", "app_metadata")


@unit_of_work
def create_user(*, tenant_id: str, connection: Connection, identifier: str = "", password: str | None = None, **profile: Any) -> User:
    """Create a user of `connection` with the id `<provider>|<identifier>`. Without `identifier`, a random identifier is used.

    `name` defaults to the email address, username or phone number. `nickname` defaults to the part of the email address before the "@".
    Raises `Invalid` for invalid values and `AlreadyExists` if the id, email address, username or phone number is taken.
    """
    _refuse_unknown(profile)
    refuse_if_being_deleted(connection)
    user = new_user(connection, identifier or new_hex_id(), profile)
    if identifier:
        # A concurrent request may link a user with this id, and the id then belongs to an identity. Wait for the end of such requests
        # before the next line checks the identities.
        _lock_user_id(tenant_id, user.user_id)
    if LinkedIdentity.objects.of(tenant_id).filter(provider=user.provider, identifier=user.identifier).exists():
        raise AlreadyExists("The user already exists.")
    validated_save(user)
    if password is not None:
        set_password(user, password)
    return user


@unit_of_work
def update_user(*, tenant_id: str, user_id: str, changes: dict[str, Any]) -> User:
    """Replace the named profile fields. Metadata maps are merged at the first level; a null removes its key.

    An empty map clears all keys. A new email address is unverified unless `email_verified` is also given. `password` sets a password.
    Raises `NotFound`, `Invalid` or `AlreadyExists`.
    """
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    before = standing_of(user)
    changes = dict(changes)
    password = changes.pop("password", None)
    _refuse_unknown(changes)
    if "email" in changes and changes["email"] != user.email:
        changes.setdefault("email_verified", False)
    for field, value in changes.items():
        setattr(user, field, _merged(getattr(user, field), value) if field in METADATA else value)
    if changes:
        validated_save(user, fields=list(changes))
        tell_account_change(user, before)
    if password is not None:
        set_password(user, password)
    return user


def block_user(*, tenant_id: str, user_id: str) -> User:
    """Block a user on behalf of an administrator. Unlike a brute-force block, this is a profile change."""
    return update_user(tenant_id=tenant_id, user_id=user_id, changes={"blocked": True})


def unblock_user(*, tenant_id: str, user_id: str) -> User:
    """Lift an administrator's block."""
    return update_user(tenant_id=tenant_id, user_id=user_id, changes={"blocked": False})


@unit_of_work
def delete_user(*, tenant_id: str, user_id: str) -> None:
    """Delete a user with its memberships and all linked identities. Raises `NotFound`."""
    user = locked_user(tenant_id=tenant_id, user_id=user_id)
    delete_relations(tenant_id=tenant_id, user=user)
    user.delete()


@unit_of_work
def delete_users_by_email(*, tenant_id: str, connection_id: str, email: str) -> int:
    """Delete the users of the connection whose primary identity has this email address; letter case is ignored. Returns their number.

    Deletes each user as `delete_user` does. An identity that is linked to a user of another connection is kept.
    """
    rows = User.objects.of(tenant_id).filter(connection_id=connection_id).annotate(lower_email=Lower("email"))
    found = rows.filter(lower_email=Lower(Value(email))).order_by("pk").values_list("pk", flat=True)
    return sum(1 for key in list(found) if _delete_if_still(tenant_id, key, email))


def _delete_if_still(tenant_id: str, key: int, email: str) -> bool:
    """Lock a user and delete it if it still has the email address. The address may have changed before the lock."""
    lock_rows(User, [key])
    user = User.objects.of(tenant_id).filter(pk=key).annotate(lower_email=Lower("email")).filter(lower_email=Lower(Value(email))).first()
    if user is None:
        return False
    delete_relations(tenant_id=tenant_id, user=user)
    user.delete()
    return True


@unit_of_work
def link_users(*, tenant_id: str, primary_id: str, secondary_id: str) -> User:
    """Make the secondary user an identity of the primary user.

    Deletes the memberships, the row and the metadata of the secondary user; the identity keeps the profile. Raises `NotFound`. Raises
    `NotSupported` if both users are the same, or if the secondary user has linked identities.
    """
    if primary_id == secondary_id:
        raise NotSupported("A user cannot be linked to itself.")
    primary, secondary = _locked_pair(tenant_id, primary_id, secondary_id)
    if secondary.linked_identities.exists():
        raise NotSupported("The secondary user has linked identities of its own; unlink them first.")
    refuse_if_being_deleted(secondary.connection)
    identity = LinkedIdentity(
        tenant_id=tenant_id,
        user=primary,
        connection=secondary.connection,
        provider=secondary.provider,
        identifier=secondary.identifier,
        profile_data=profile_data(secondary),
    )
    _lock_user_id(tenant_id, secondary.user_id)
    delete_relations(tenant_id=tenant_id, user=secondary)
    secondary.delete()
    touch(primary)
    validated_save_identity(identity)
    return primary


@unit_of_work
def unlink_identity(*, tenant_id: str, user_id: str, provider: str, identifier: str, restore: bool = True) -> User:
    """Remove a linked identity from its user and restore it as a separate user, without metadata.

    If `restore` is false, deletes the identity, as a deletion of its connection requires. Raises `NotFound`. Raises `NotSupported` for the
    primary identity. Raises `AlreadyExists` if another user now has the email address of the identity.
    """
    primary = locked_user(tenant_id=tenant_id, user_id=user_id)
    if primary.user_id == f"{provider}|{identifier}":
        raise NotSupported("The primary identity cannot be unlinked.")
    identity = primary.linked_identities.select_related("connection").filter(provider=provider, identifier=identifier).first()
    if identity is None:
        raise NotFound("The identity is not linked to this user.")
    touch(primary)
    identity.delete()
    if restore:
        known = {field: value for field, value in identity.profile_data.items() if field in PROFILE}
        create_user(tenant_id=tenant_id, connection=identity.connection, identifier=identifier, **known)
    return primary


def locked_user(*, tenant_id: str, user_id: str) -> User:
    """Return the user with its row locked until the transaction ends. Raises `NotFound`."""
    users = User.objects.of(tenant_id).select_related("connection").select_for_update(no_key=True, of=("self",))
    user = users.filter(user_id=user_id).first()
    if user is None:
        raise NotFound("The user does not exist.")
    return user


def locked_users(*, tenant_id: str, user_ids: Iterable[str]) -> list[User]:
    """Return the users in the order of their keys, locked in that order until the transaction ends; raise `NotFound` if a user is missing.

    The locks prevent the deletion of a user before its new relation is recorded: a relation of a deleted user cannot be recorded.
    Call this function before the root of the relation is locked: the deletion of a user also locks the user first, so locks in another
    order could cause a deadlock.
    """
    return _complete(User.objects.of(tenant_id).select_for_update(no_key=True), user_ids)


def users_named(*, tenant_id: str, user_ids: Iterable[str]) -> list[User]:
    """Return the users in key order. Raises `NotFound` if a user does not exist."""
    return _complete(User.objects.of(tenant_id), user_ids)


def _complete(rows: models.QuerySet[User], user_ids: Iterable[str]) -> list[User]:
    wanted = set(user_ids)
    users = list(rows.filter(user_id__in=wanted).order_by("pk"))
    if len(users) != len(wanted):
        raise NotFound("The user does not exist.")
    return users


def standing_of(user: User) -> tuple[bool, str]:
    """Return the facts that `tell_account_change` compares: whether the user is blocked, and the email address."""
    return bool(user.blocked), user.email or ""


def tell_account_change(user: User, before: tuple[bool, str], *, in_bulk: bool = False) -> None:
    """Send `account_changed` if the user was blocked or unblocked since `before`, or if its email address changed or was removed."""
    (was_blocked, former), (is_blocked, email) = before, standing_of(user)
    told = {"blocked": was_blocked != is_blocked, "email": bool(former) and former.casefold() != email.casefold()}
    changed = frozenset(name for name, is_told in told.items() if is_told)
    if changed:
        former_email = former if told["email"] and not in_bulk else ""
        account_changed.send(sender=User, user=user, changed=changed, former_email=former_email)


def touch(user: User) -> None:
    """Update the time of change of a user whose identities changed. A save that changes only this time records no event."""
    user.updated_at = timezone.now()
    user.save(update_fields=["updated_at"])


def validated_save_identity(identity: LinkedIdentity) -> None:
    """Validate and save a linked identity, which has no time of change."""
    identity.clean_fields()
    identity.save()


def _lock_user_id(tenant_id: str, user_id: str) -> None:
    lock_name(f"user:{tenant_id}:{user_id}")


def _locked_pair(tenant_id: str, first_id: str, second_id: str) -> tuple[User, User]:
    keys = dict(User.objects.of(tenant_id).filter(user_id__in=(first_id, second_id)).values_list("user_id", "pk"))
    lock_rows(User, keys.values())
    rows = {user.user_id: user for user in User.objects.of(tenant_id).select_related("connection").filter(pk__in=list(keys.values()))}
    if first_id not in rows or second_id not in rows:
        raise NotFound("The user does not exist.")
    return rows[first_id], rows[second_id]


def new_user(connection: Connection, identifier: str, profile: dict[str, Any]) -> User:
    """Return an unsaved user of `connection` with default names. Raises `Invalid` for an invalid identifier."""
    user = User(tenant_id=connection.tenant_id, connection=connection, user_id=user_id_of(connection, identifier), **profile)
    _fill_names(user)
    return user


def user_id_of(connection: Connection, identifier: str) -> str:
    """Return `<provider>|<identifier>`. Ids of enterprise and `oauth2` users contain the connection's name. Raises `Invalid`."""
    if any(character.isspace() for character in identifier) or len(identifier) > 255:
        raise Invalid({"user_id": ["At most 255 characters, no white space."]})
    if connection.has_named_ids and not identifier.startswith(f"{connection.name}|"):
        identifier = f"{connection.name}|{identifier}"
    return f"{connection.strategy}|{identifier}"


def _fill_names(user: User) -> None:
    user.name = user.name or user.email or user.username or user.phone_number
    if not user.nickname and user.email:
        user.nickname = user.email.partition("@")[0]


def _merged(old: dict[str, Any], change: dict[str, Any] | None) -> dict[str, Any]:
    if not change:
        return {}
    merged = {**old, **change}
    return {key: value for key, value in merged.items() if value is not None}


def _refuse_unknown(names: Iterable[str]) -> None:
    unknown = {name: ["Unknown field."] for name in names if name not in PROFILE}
    if unknown:
        raise Invalid(unknown)
