"""`/login/callback`: where providers send the browser back to, with a code or with a refusal."""

from __future__ import annotations

import hmac

from django.http import HttpRequest, HttpResponse

from authapi.accounts.event_context import context_of
from authapi.accounts.password_login import note_login_without_signals
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.requests import RequestCase
from authapi.login import flow
from authapi.login.browser import see_other, with_parameters
from authapi.login.cookies import BROWSER, read_cookie
from authapi.login.flow import ProvenUser
from authapi.login.login import Login, kept_login
from authapi.models import LoginTransaction
from authapi.pages.tenant_page import tenant_page
from authapi.services import sign_in_log
from authapi.upstream.authentication_requests import AuthenticationRequest, end_request, request_for
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.login import proven
from authapi.upstream.logout import kept_for_logout
from authapi.upstream.people import user_of
from foundation.change_context import change_context
from foundation.secrets.random_secrets import digest_of
from identity.hosts import HostMatch
from identity.models import Connection, User

# What of an answer has a meaning here (OpenID Connect Core 1.0, 3.1.2.5 and 3.1.2.6; RFC 9207, 2).
_MEMBERS = ("code", "state", "iss", "error", "error_description")
_METHOD = "federated"
_SUCCESS, _FAILURE = "s", "f"


@tenant_page("login_callback")
def login_callback(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Finish a login elsewhere and go on with the client's request, which is told where it fails."""
    sent = request.POST if request.method == "POST" else request.GET
    repeated = next((name for name in _MEMBERS if len(sent.getlist(name)) > 1), None)
    if repeated is not None:
        raise RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=repeated)
    answer = {name: sent[name] for name in _MEMBERS if name in sent}
    if request.method == "POST":
        # The cookie may not travel with a form that another site posts; it does with the navigation that follows.
        return see_other(request, with_parameters(request.path, answer))
    row, sent_request = _answered_request(request, host, answer.get("state", ""))
    return _finish(kept_login(request, host, row), sent_request, answer)


def _answered_request(request: HttpRequest, host: HostMatch, state: str) -> tuple[LoginTransaction, AuthenticationRequest]:
    """Return the login that the answer belongs to, and let no other answer have it."""
    found = request_for(host.tenant_id, state)
    if found is None:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    browser = read_cookie(request, BROWSER)
    if not browser or not hmac.compare_digest(found[0].browser_digest, digest_of(browser)):
        # RFC 9700, 4.7: an attacker sent the answer to a login of their own to another person, who would end up in the attacker's account.
        raise RequestRefused(LoginCase.FOREIGN_BROWSER)
    if not end_request(found[0]):
        raise RequestRefused(LoginCase.REQUEST_EXPIRED)
    return found


def _finish(login: Login, sent_request: AuthenticationRequest, answer: dict[str, str]) -> HttpResponse:
    connection: Connection | None = None
    try:
        connection = next((one for one in login.connections if one.pk == sent_request.connection_id), None)
        if connection is None:
            # Taken away from the client while the user was elsewhere.
            raise RequestRefused(LoginCase.UNKNOWN_CONNECTION)
        elsewhere = proven(connection, sent_request, answer)
        with change_context(context_of(login.host, login.client, ip=login.address, user_agent=login.user_agent, method="GET")):
            user = user_of(connection, elsewhere)
    except RequestRefused as refused:
        _note(login, connection, None, refused)
        return flow.refuse(login, refused)
    note_login_without_signals(user, login.address)
    _note(login, connection, user, None)
    upstream = kept_for_logout(connection, elsewhere)
    return flow.user_authenticated(login, ProvenUser(user, connection, methods=(_METHOD,), upstream=upstream))


def _note(login: Login, connection: Connection | None, user: User | None, refused: RequestRefused | None) -> None:
    detail = refused.detail if isinstance(refused, UpstreamFailed) else ""
    sign_in_log.note(
        tenant_id=login.host.tenant_id,
        type=_FAILURE if refused else _SUCCESS,
        is_success=refused is None,
        description=" ".join(part for part in (refused.failure.description, detail) if part) if refused else "",
        user=user,
        client=login.client,
        connection=connection.name if connection else "",
        ip=login.address,
        user_agent=login.user_agent,
    )
