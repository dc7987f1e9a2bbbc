"""The user of a verified login at a provider: found, created at the first login, and updated at later logins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Lower

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.profile import profile_of
from authapi.upstream.proven import Proven
from identity.models import Connection, LinkedIdentity, User
from identity.services.failures import AlreadyExists, BeingDeleted, Invalid
from identity.services.users import create_user, update_user, user_id_of

_EACH_LOGIN = "on_each_login"
_NEVER = "never_on_login"


def user_of(connection: Connection, proven: Proven) -> User:
    """Return the user of a verified login; create the user at the first login. Raises `UpstreamFailed`.

    The user is found only by the subject at this connection: an equal email address never links a login to an existing account.
    """
    found = _found(connection, proven.subject)
    profile = profile_at_login(connection, proven)
    if found is None:
        return _created(connection, proven.subject, profile)
    user, is_primary = found
    if user.blocked:
        raise UpstreamFailed(LoginCase.USER_BLOCKED)
    changes = {field: value for field, value in profile.items() if getattr(user, field) != value}
    if not is_primary or not changes or connection.options.get("set_user_root_attributes", _EACH_LOGIN) != _EACH_LOGIN:
        return user
    try:
        return update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes=changes)
    except (AlreadyExists, Invalid) as error:
        raise _unkept(error) from error


def known_user(connection: Connection, subject: str) -> User | None:
    """Return the user with this subject at a connection. None if the user has never logged in, or if the subject is invalid."""
    try:
        found = _found(connection, subject)
    except UpstreamFailed:
        return None
    return found[0] if found is not None else None


@dataclass(frozen=True)
class Foreseen:
    """What a login with a subject would do now. `user` is None if the login would create the user or would fail."""

    user_id: str = ""
    user: User | None = None
    takes_profile: bool = True
    problem: str = ""


def foreseen(connection: Connection, subject: str, *, email: str) -> Foreseen:
    """Return what a login with this subject would do now.

    Changes nothing. `email` is empty if the profile has no email address.
    """
    takes = connection.options.get("set_user_root_attributes", _EACH_LOGIN)
    try:
        found = _found(connection, subject)
    except UpstreamFailed as failed:
        return Foreseen(problem=failed.detail or failed.failure.description)
    if found is None and connection.options.get("disable_signup"):
        return Foreseen(problem="The user does not exist yet, and the connection does not allow sign-up.")
    if found is not None and found[0].blocked:
        return Foreseen(problem=f"The user {found[0].user_id} is blocked.")
    takes_profile = takes != _NEVER if found is None else found[1] and takes == _EACH_LOGIN
    if takes_profile and email and _is_taken(connection, email, user=found[0] if found else None):
        return Foreseen(problem=LoginCase.UPSTREAM_EMAIL_TAKEN.failure.description)
    if found is None:
        return Foreseen(user_id_of(connection, subject), takes_profile=takes_profile)
    return Foreseen(found[0].user_id, found[0], takes_profile=takes_profile)


def _is_taken(connection: Connection, email: str, *, user: User | None) -> bool:
    """Tell whether another user of the connection has this email address."""
    others = User.objects.of(connection.tenant_id).alias(key=Lower("email")).filter(connection=connection, key=email.lower())
    return (others.exclude(pk=user.pk) if user is not None else others).exists()


def _found(connection: Connection, subject: str) -> tuple[User, bool] | None:
    """Return the user with this subject, and whether the subject is the user's primary identity. None if there is no such user."""
    if connection.has_named_ids and subject.startswith(f"{connection.name}|"):
        # `user_id_of` adds the prefix `<connection>|` only to subjects that lack this prefix. So the users with the subjects `x` and
        # `<connection>|x` would get the same user id.
        raise UpstreamFailed(LoginCase.UPSTREAM_PROFILE_REFUSED, "The subject has the form of a user id.")
    try:
        user_id = user_id_of(connection, subject)
    except Invalid as error:
        raise UpstreamFailed(LoginCase.UPSTREAM_PROFILE_REFUSED, "The subject cannot be part of a user id.") from error
    user = User.objects.of(connection.tenant_id).select_related("connection").filter(user_id=user_id).first()
    if user is not None and user.connection_id != connection.pk:
        # User ids of social connections do not contain the name of the connection, so users of two connections of one strategy may have the
        # same id.
        raise UpstreamFailed(LoginCase.UPSTREAM_PROFILE_REFUSED, "Another connection has a user with this id.")
    if user is not None:
        return user, True
    provider, _, identifier = user_id.partition("|")
    linked = LinkedIdentity.objects.of(connection.tenant_id).select_related("user__connection")
    identity = linked.filter(provider=provider, identifier=identifier, connection=connection).first()
    return (identity.user, False) if identity is not None else None


def _created(connection: Connection, subject: str, profile: dict[str, Any]) -> User:
    if connection.options.get("disable_signup"):
        raise UpstreamFailed(LoginCase.UPSTREAM_SIGN_UP_DISABLED)
    try:
        return create_user(tenant_id=connection.tenant_id, connection=connection, identifier=subject, **profile)
    except AlreadyExists as error:
        # A concurrent first login has created the user.
        found = _found(connection, subject)
        if found is not None:
            return found[0]
        raise _unkept(error) from error
    except (Invalid, BeingDeleted) as error:
        raise _unkept(error) from error


def profile_at_login(connection: Connection, proven: Proven) -> dict[str, Any]:
    """Return the profile that the first login of a user stores; empty if the connection does not use the attributes of the provider."""
    if connection.options.get("set_user_root_attributes") == _NEVER:
        return {}
    return profile_of(proven.claims, proven.userinfo, connection.options.get("attribute_map"))


def _unkept(error: Exception) -> UpstreamFailed:
    case = LoginCase.UPSTREAM_EMAIL_TAKEN if isinstance(error, AlreadyExists) else LoginCase.UPSTREAM_PROFILE_REFUSED
    return UpstreamFailed(case, str(error)[:300])
