"""Lets users delete their own account immediately and permanently, if the tenant allows it."""

from __future__ import annotations

from authapi.accounts.self_service.own_act import OwnAct, own_act, shown_name
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from authapi.tenant_settings import sign_in_settings
from identity.models import User
from identity.services.users import delete_user


def is_confirmed(user: User, typed: str) -> bool:
    """Tell whether the typed text is the name of the account that the page shows, ignoring case."""
    return typed.strip().casefold() == shown_name(user).casefold()


@own_act("Deleted own account")
def delete_account(own: OwnAct, user: User) -> None:
    """Delete the user with all sessions, tokens, consents, memberships and linked identities, and record the events of these deletions.

    Raises `RequestRefused` if the tenant does not allow users to delete their account.
    """
    if not sign_in_settings(user.tenant_id).account_page.deletion:
        raise RequestRefused(RequestCase.UNSERVED)
    delete_user(tenant_id=user.tenant_id, user_id=user.user_id)
