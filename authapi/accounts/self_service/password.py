"""Lets users change their own password. The current password is required, and all other sessions end."""

from __future__ import annotations

from dataclasses import dataclass

from authapi.accounts.brute_force import held_count
from authapi.accounts.password_changes import keeping
from authapi.accounts.self_service.own_act import OwnAct, own_act, shown_name
from authapi.accounts.user_lookup import failure_key
from authapi.edge.rate_figures import OWN_PASSWORDS
from authapi.edge.throttling import Rate
from authapi.login.sessions import add_proof
from identity.models import User
from identity.services.passwords import check_credential
from identity.services.profile_rules import check_password, personal_data
from identity.services.users import update_user

_CHANGED, _FAILED = "scp", "fcp"


@dataclass(frozen=True)
class PasswordChange:
    """The result of `change_password`. A refusal is returned, not raised: an exception would roll back the count of failures. `cookie` is
    the session's new cookie."""

    cookie: str = ""
    is_wrong: bool = False
    is_blocked: bool = False
    rate: Rate | None = None


def has_password(user: User) -> bool:
    """Tell whether the user logs in with a password that this service stores."""
    return user.connection.is_database and hasattr(user, "password_credential")


@own_act("Changed own password")
def change_password(own: OwnAct, user: User, *, present: str, new: str) -> PasswordChange:
    """Replace the password if the submitted current password is correct. Ends all other sessions, all refresh tokens and all mailed links.

    A wrong password is counted like a failed login of the account, so that a stolen session does not allow unlimited guesses. The session
    of the browser continues with a new cookie. Raises `PasswordTooWeak` before any change.
    """
    if not OWN_PASSWORDS.takes(user.tenant_id, user.user_id):
        return PasswordChange(rate=Rate.of_empty(OWN_PASSWORDS))
    count = held_count(user.connection, failure_key(user, shown_name(user)), own.ip)
    if count is not None and count.is_blocked:
        own.note(_FAILED, is_success=False, description="The account is blocked after too many failed logins.")
        return PasswordChange(is_blocked=True)
    if not has_password(user) or not check_credential(user.password_credential, present):
        if count is not None:
            count.add_failure()
        own.note(_FAILED, is_success=False, description="Wrong password.")
        return PasswordChange(is_wrong=True)
    check_password(user.connection, new, personal_data(user), user=user)
    with keeping(own.session):
        update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"password": new})
    own.note(_CHANGED)
    cookie = add_proof(own.session, ())
    # `add_proof` always finds the session: `locked_user` has read the row of the session, and the lock on the user prevents the
    # deletion of this row.
    return PasswordChange(cookie=cookie or "")
