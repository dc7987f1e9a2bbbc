"""Finishes a login that a provider has answered: finds the user, logs the result, and continues with the client's request.

Used by all protocols of providers; each protocol passes its check as a function.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from authapi.accounts.event_context import context_of
from authapi.accounts.password_login import note_login_without_signals
from authapi.edge.rate_figures import REFUSED_MESSAGES
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import flow
from authapi.login.browser import address_of, user_agent_of
from authapi.login.cookies import BROWSER, read_cookie
from authapi.login.flow import ProvenUser
from authapi.login.login import Login
from authapi.models import Client, LoginTransaction, RefusedMessage
from authapi.services import sign_in_log
from authapi.upstream.authentication_requests import AuthenticationRequest, end_request, request_for
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.federated_logout import kept_for_logout
from authapi.upstream.people import user_of
from authapi.upstream.proven import Proven
from foundation.change_context import change_context
from foundation.secrets.random_secrets import digest_of
from identity.hosts import HostMatch
from identity.models import Connection, User

METHOD = "federated"
_SUCCESS, _FAILURE = "s", "f"
Prove = Callable[[Connection], Proven]


@dataclass(frozen=True)
class Evidence:
    """Two functions: the first checks the provider's answer, the second returns the text of a refused answer, for administrators."""

    prove: Prove
    shown: Callable[[], str] = str


def answered_request(request: HttpRequest, host: HostMatch, state: str) -> tuple[LoginTransaction, AuthenticationRequest]:
    """Return the login and the authentication request to which an answer belongs. A second answer is refused. Raises `RequestRefused`."""
    found = request_for(host.tenant_id, state)
    if found is None:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    browser = read_cookie(request, BROWSER)
    if not browser or not hmac.compare_digest(found[0].browser_digest, digest_of(browser)):
        # RFC 9700, 4.7: an attacker may have begun a login of their own, and have sent the provider's answer to this user. Without this
        # check, the user would be logged in to the attacker's account.
        raise RequestRefused(LoginCase.FOREIGN_BROWSER)
    if not end_request(found[0]):
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    return found


def finish(login: Login, connection_id: str, evidence: Evidence) -> HttpResponse:
    """Continue a login as the user whom the provider has authenticated. Errors are sent to the client."""
    connection: Connection | None = None
    try:
        connection = next((one for one in login.connections if one.pk == connection_id), None)
        if connection is None:
            # The connection was disabled for the client during the login.
            raise RequestRefused(LoginCase.UNKNOWN_CONNECTION)
        elsewhere = evidence.prove(connection)
        with change_context(context_of(login.host, login.client, ip=login.address, user_agent=login.user_agent, method="GET")):
            user = user_of(connection, elsewhere)
    except RequestRefused as refused:
        note_refusal(login.http_request, login.host, refused, client=login.client, connection=connection, shown=evidence.shown)
        return flow.refuse(login, refused)
    note_login_without_signals(user, login.address)
    _note_success(login, connection, user)
    upstream = kept_for_logout(connection, elsewhere)
    return flow.user_authenticated(login, ProvenUser(user, connection, methods=(METHOD,), upstream=upstream))


def note_refusal(
    request: HttpRequest,
    host: HostMatch,
    refused: RequestRefused,
    *,
    client: Client | None = None,
    connection: Connection | None = None,
    shown: Callable[[], str] = str,
) -> None:
    """Write to the sign-in log why a login failed, in words that help to remove the cause.

    If a message of the provider caused the failure, also store the message with this line, as far as a rate limit permits.
    """
    is_about_message = isinstance(refused, UpstreamFailed)
    detail = refused.detail if isinstance(refused, UpstreamFailed) else ""
    line = sign_in_log.note(
        tenant_id=host.tenant_id,
        type=_FAILURE,
        is_success=False,
        description=" ".join(part for part in (refused.failure.description, detail) if part),
        client=client,
        connection=connection.name if connection else "",
        ip=address_of(request),
        user_agent=user_agent_of(request),
    )
    message = shown() if is_about_message and REFUSED_MESSAGES.takes(host.tenant_id, "") else ""
    if message:
        RefusedMessage(tenant_id=host.tenant_id, line_id=line.pk, text=message).save(force_insert=True)


def _note_success(login: Login, connection: Connection, user: User) -> None:
    sign_in_log.note(
        tenant_id=login.host.tenant_id,
        type=_SUCCESS,
        is_success=True,
        user=user,
        client=login.client,
        connection=connection.name,
        ip=login.address,
        user_agent=login.user_agent,
    )
