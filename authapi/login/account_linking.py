"""Links accounts in a login. The user of the session agrees and logs in to a second account.

Then the second account becomes a linked identity.
"""

from __future__ import annotations

from collections.abc import Iterable

from authapi.factors.demands import LoginFacts, factors_due
from authapi.factors.policy import Due
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.failures.logins import LoginCase
from authapi.login.login import Login
from authapi.models import Session
from foundation.acting import Act, Actor, acting
from foundation.change_context import ChangeContext, ChangingClient, change_context
from identity.models import User
from identity.services.failures import ServiceError
from identity.services.users import link_users

# Key in the progress of a login: the user of its session has agreed to link the accounts.
AGREED = "has_agreed_to_link"


def linked_session(login: Login, user: User, *, methods: Iterable[str]) -> Session:
    """Link the account of this login to the user of the session, and return the session. Raises `RequestRefused`.

    An attacker may send a user a URL that links the attacker's account. So the session of the browser must belong to the account that the
    request names, and the user of the session must have agreed. If a user has a second factor, a stolen password must not be enough to
    link the account. So the login to the second account must meet every requirement of a normal login. `methods` are the methods of this
    login.
    """
    session = login.session
    if session is None or session.user.user_id != login.wish.link_to:
        raise RequestRefused(LegacyCase.LINK_NEEDS_SESSION)
    if login.row.session_id != session.pk or not login.row.progress.get(AGREED):
        raise RequestRefused(LegacyCase.LINK_DENIED)
    if user.pk != session.user_id:
        if factors_due(LoginFacts(login.client, login.organization, user, frozenset(methods))) is Due.PROVE:
            raise RequestRefused(LoginCase.SECOND_FACTOR_REQUIRED)
        _link(login, session.user, user)
    return session


def _link(login: Login, primary: User, secondary: User) -> None:
    client = login.client
    request = {"geo": {}, "hostname": login.host.host, "ip": login.address, "method": "GET", "user_agent": login.user_agent}
    changing = ChangingClient(client.client_id, client.name, client.metadata)
    actor = Actor("user", primary.user_id, primary.email or primary.username or primary.name or primary.user_id)
    act = Act(actor, ip=login.address or None, user_agent=login.user_agent, label="Linked an account")
    try:
        with acting(act), change_context(ChangeContext(client=changing, request=request)):
            link_users(tenant_id=primary.tenant_id, primary_id=primary.user_id, secondary_id=secondary.user_id)
    except ServiceError as error:
        raise RequestRefused(LegacyCase.CANNOT_LINK, reason=str(error)) from error
