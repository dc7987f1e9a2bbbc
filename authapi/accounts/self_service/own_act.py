"""One act of users on their own account: the user, the session that proves who the user is, and the source of the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from authapi.accounts.event_context import context_of
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.models import Client, Session
from authapi.services import sign_in_log
from foundation.acting import Act, Actor, acting
from foundation.change_context import change_context
from foundation.database.transactions import unit_of_work
from identity.audit.entries import record
from identity.hosts import HostMatch
from identity.models import User
from identity.services.failures import NotFound
from identity.services.users import locked_user

Params = ParamSpec("Params")
Result = TypeVar("Result")


@dataclass(frozen=True)
class OwnAct:
    """One act of a user on their own account. `session` is the session of the browser, and `client` is the client of the account page."""

    host: HostMatch
    client: Client
    session: Session
    ip: str
    user_agent: str

    @property
    def user(self) -> User:
        return self.session.user

    def note(self, code: str, *, is_success: bool = True, description: str = "", **details: Any) -> None:
        """Write a line about the user to the sign-in log."""
        sign_in_log.note(
            tenant_id=self.host.tenant_id,
            type=code,
            is_success=is_success,
            description=description,
            user=self.user,
            client=self.client,
            connection=self.session.connection.name,
            ip=self.ip,
            user_agent=self.user_agent,
            details=details,
        )

    def record(self, act: str, **facts: Any) -> None:
        """Write an entry about an act to the audit log. Call this method within `own_act`, for an act that changes no audited row."""
        record(act, about=self.user, **facts)

    def locked_user(self) -> User:
        """Lock and return the user. Raises `RequestRefused` if the session has ended.

        Blocking or deleting a user ends the sessions under the same lock. A session that still exists therefore proves that the user exists
        and is not blocked.
        """
        try:
            user = locked_user(tenant_id=self.host.tenant_id, user_id=self.user.user_id)
        except NotFound as error:
            raise RequestRefused(LoginCase.LOGIN_REQUIRED) from error
        rows = Session.objects.of(self.host.tenant_id).filter(pk=self.session.pk, digest=self.session.digest)
        if user.blocked or not rows.exists():
            raise RequestRefused(LoginCase.LOGIN_REQUIRED)
        return user


def own_act(
    label: str, *, before: Callable[[OwnAct], None] | None = None
) -> Callable[[Callable[Concatenate[OwnAct, User, Params], Result]], Callable[Concatenate[OwnAct, Params], Result]]:
    """Make a function run in one transaction, with the user as the actor and the row of the user locked. The function gets the act and the
    user.

    `label` names the act in the audit log. The events of the act name the client of the account page. `before` acquires the locks that
    must be acquired before the lock of the user. Raises `RequestRefused` if the session of the act has ended in the meantime.
    """

    def decorate(function: Callable[Concatenate[OwnAct, User, Params], Result]) -> Callable[Concatenate[OwnAct, Params], Result]:
        @unit_of_work
        def locked(own: OwnAct, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
            if before is not None:
                before(own)
            return function(own, own.locked_user(), *args, **kwargs)

        @wraps(function)
        def act(own: OwnAct, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
            actor = Actor("user", own.user.user_id, shown_name(own.user))
            context = context_of(own.host, own.client, ip=own.ip, user_agent=own.user_agent)
            with acting(Act(actor, ip=own.ip or None, user_agent=own.user_agent, label=label)), change_context(context):
                return locked(own, *args, **kwargs)

        return act

    return decorate


def shown_name(user: User) -> str:
    """Return the name of a user for logs and pages."""
    return user.email or user.username or user.phone_number or user.name or user.user_id
