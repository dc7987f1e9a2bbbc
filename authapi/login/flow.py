"""From a request to its answer, with pages in between. Each page notes what it found out and comes back to `advance`."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.client_auth import clients
from authapi.failures import Case, RequestRefused
from authapi.grants.user_tokens import CodeParameters, UserIssue
from authapi.login import organizations
from authapi.login.connections import takes_sign_ups
from authapi.login.cookies import BROWSER, SESSION, browser_of, set_cookie
from authapi.login.decision import Step, next_step
from authapi.login.known_browser import remember_browser
from authapi.login.parked import TooMuchParked, require_room
from authapi.login.sessions import begin_session, end_session, note_client, renew_session
from authapi.login.transactions import CHOSEN, begin_anew, keep, new_handle, note_progress
from authapi.login.visit import Visit, facts_of, visit_of
from authapi.models import AuthorizationRequest, Client, Session
from authapi.pages.hosted_page import tenant_host
from authapi.protocols.oauth.front_channel import front_channel
from authapi.protocols.oauth.parameters import read, single, target_of
from authapi.protocols.oauth.responses import respond, see_other, with_parameters
from authapi.protocols.oauth.sent import sent_pairs
from authapi.services import sign_in_log
from authapi.tenant_settings import sign_in_settings
from foundation.tenancy import tenant_bound
from identity.hosts import HostMatch
from identity.models import Connection, User
from identity.services.memberships import add_members

PAGES = {
    Step.ORGANIZATION: "/u/organization",
    Step.LOGIN: "/u/login",
    Step.CREATE: "/u/signup",
    Step.SELECT_ACCOUNT: "/u/select-account",
    Step.CONSENT: "/u/consent",
}
# The name under which pages carry the handle of their request.
HANDLE = "state"
_REPLACED = "session-revoked"
_SILENT_SUCCESS, _SILENT_FAILURE = "ssa", "fsa"


def begin(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Answer a request to `/authorize`: with a redirect to the client, or to the page that is due.

    Raises `RequestRefused` for what must be told to the person, since no address of a client is trusted yet.
    """
    parameters = read(sent_pairs(request))
    client = _client(host, single(parameters, "client_id"))
    visit = Visit(request, host, client, parameters, target_of(parameters, facts_of(client)))
    try:
        visit.check()
        return advance(visit)
    except TooMuchParked:
        # Not a matter of the client.
        raise
    except RequestRefused as refused:
        return refuse(visit, refused)


def resume(request: HttpRequest, host: HostMatch, row: AuthorizationRequest, *, handle: str | None = None) -> HttpResponse:
    """Go on with a request after one of its pages."""
    visit = visit_of(request, host, row)
    try:
        return advance(visit, handle=handle)
    except RequestRefused as refused:
        return refuse(visit, refused)


def user_authenticated(
    *,
    row: AuthorizationRequest,
    user: User,
    connection: Connection,
    methods: Iterable[str],
    upstream: str | None,
    request: HttpRequest,
    handle: str | None = None,
) -> HttpResponse:
    """Begin the session of a user who has just proven who they are, and go on with the request.

    `row` was found by this very browser. `handle` is its handle where the caller knows it; else the pages get another one.
    The cookie is a new one in any case, so whatever a browser was made to send before opens nothing (session fixation).
    """
    host = tenant_host(request)
    if organizations.question_of(row.client) is organizations.Question.AFTER_LOGIN:
        # Chosen by whoever was logged in before: neither the session nor a membership may come of it.
        row.progress.pop(CHOSEN, None)
    visit = visit_of(request, host, row)
    with tenant_bound(host.tenant_id):
        session, cookie = _session(visit, user, connection, methods, upstream)
        # What follows sees the new session and not what the browser sent.
        visit.__dict__["session"] = session
        row.session = session
        note_progress(row, has_logged_in=True)
        try:
            _join_organization(visit, user, connection)
            answer = advance(visit, handle=handle)
        except RequestRefused as refused:
            answer = refuse(visit, refused)
    seconds = max(1, int((session.expires_at - timezone.now()).total_seconds())) if session.is_persistent else None
    set_cookie(answer, SESSION, cookie, seconds=seconds)
    remember_browser(answer, user)
    return answer


def advance(visit: Visit, *, handle: str | None = None) -> HttpResponse:
    """Do the next step: show its page, or answer the client. Raises `RequestRefused`."""
    try:
        step = next_step(visit.asked, visit.situation())
    except RequestRefused as refused:
        _note_silent(visit, refused)
        raise
    if step is Step.RESPOND:
        return _answer(visit)
    browser = browser_of(visit.request)
    if visit.row is None:
        require_room(visit)
        visit.row, handle = keep(client=visit.client, parameters=visit.parameters, browser=browser)
    answer = see_other(visit.request, with_parameters(_page(visit, step), {HANDLE: handle or new_handle(visit.row)}))
    set_cookie(answer, BROWSER, browser)
    _keep_opener(visit, answer)
    return answer


def refuse(visit: Visit, refused: RequestRefused) -> HttpResponse:
    """Tell the client that its request has failed (RFC 6749, 4.1.2.1)."""
    if visit.row is not None:
        begin_anew(visit.row)
    members = {"error": refused.failure.error, "error_description": refused.failure.description}
    return respond(visit.request, visit.target, members, issuer=_issuer(visit))


def _page(visit: Visit, step: Step) -> str:
    """Return the page of a step; where nobody can make an account, the login takes the place of the sign-up."""
    if step is Step.CREATE and not any(takes_sign_ups(connection) for connection in visit.connections):
        return PAGES[Step.LOGIN]
    return PAGES[step]


def _client(host: HostMatch, client_id: str) -> Client:
    if not client_id:
        raise RequestRefused(Case.MISSING_PARAMETER, parameter="client_id")
    try:
        client = clients.get((host.tenant_id, client_id[:64]))
    except Client.DoesNotExist as error:
        raise RequestRefused(Case.UNKNOWN_CLIENT, client_id=client_id[:64]) from error
    if client.revoked_at is not None or client.client_id != client_id:
        raise RequestRefused(Case.UNKNOWN_CLIENT, client_id=client_id[:64])
    return client


def _session(visit: Visit, user: User, connection: Connection, methods: Iterable[str], upstream: str | None) -> tuple[Session, str]:
    """Return the session from now on: the one that is there, proven anew, or a new one in place of somebody else's."""
    proofs = tuple(methods)
    present = visit.session
    if present is not None and (present.user_id, present.connection_id) == (user.pk, connection.pk):
        cookie = renew_session(present, methods=proofs, ip=visit.address, user_agent=visit.user_agent, upstream=upstream)
        if cookie is not None:
            return present, cookie
    elif present is not None:
        end_session(present, reason=_REPLACED)
    return begin_session(
        tenant_id=visit.host.tenant_id,
        user=user,
        connection=connection,
        methods=proofs,
        ip=visit.address,
        user_agent=visit.user_agent,
        is_persistent=sign_in_settings(visit.host.tenant_id).is_session_persistent,
        organization=visit.organization,
        upstream=upstream,
        issuer=visit.host.issuer,
    )


def _join_organization(visit: Visit, user: User, connection: Connection) -> None:
    organization = visit.organization
    if organization is not None and organizations.joins_on_login(organization, connection):
        add_members(tenant_id=organization.tenant_id, organization_id=organization.pk, user_ids=[user.user_id])


def _answer(visit: Visit) -> HttpResponse:
    """Make what was asked for and send it. Raises `RequestRefused`."""
    session, asked = visit.session, visit.asked
    if session is None:
        raise RequestRefused(Case.LOGIN_REQUIRED)
    if visit.organization is not None:
        organizations.check_membership(visit.organization, session.user)
    elif organizations.usage_of(visit.client) == "require":
        raise RequestRefused(Case.ORGANIZATION_REQUIRED)
    entitlement = visit.entitlement(session.user)
    issue = UserIssue(
        host=visit.host,
        client=visit.client,
        user=session.user,
        connection=session.connection,
        audience=entitlement.audience,
        scopes=entitlement.scopes,
        session=session,
        organization=visit.organization,
        auth_time=session.authenticated_at,
        methods=session.methods,
        nonce=asked.nonce,
        lineage=uuid4(),
        confirmation=None,
    )
    code = CodeParameters(asked.target.redirect_uri, asked.is_redirect_uri_given, asked.code_challenge, asked.code_challenge_method)
    members = front_channel(issue, response_types=asked.response_types, code_parameters=code, state=asked.target.state)
    note_client(session, visit.client)
    _note_silent(visit)
    if visit.row is not None:
        begin_anew(visit.row)
    return respond(visit.request, asked.target, members, issuer=_issuer(visit))


def _issuer(visit: Visit) -> str:
    return visit.host.issuer if sign_in_settings(visit.host.tenant_id).sends_issuer else ""


def _note_silent(visit: Visit, refused: RequestRefused | None = None) -> None:
    """Write a line about an answer that nobody saw; logins and refusals on pages have lines of their own."""
    if visit.asked.is_silent:
        sign_in_log.note(
            tenant_id=visit.host.tenant_id,
            type=_SILENT_FAILURE if refused else _SILENT_SUCCESS,
            is_success=refused is None,
            description=refused.failure.description if refused else "",
            user=visit.session.user if visit.session else None,
            client=visit.client,
            ip=visit.address,
            user_agent=visit.user_agent,
        )


def _keep_opener(visit: Visit, answer: HttpResponse) -> None:
    """Leave the page its opener where the answer will be a message to it."""
    if visit.asked.is_framed:
        answer["Cross-Origin-Opener-Policy"] = "unsafe-none"
