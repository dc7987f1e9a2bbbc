"""Runs a login from the request to the answer. Each page of the login stores its result and calls `advance`."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.edge.countries import country_in
from authapi.factors.demands import policy_of
from authapi.factors.kinds import RECOVERY_CODE, methods_of
from authapi.factors.policy import Due
from authapi.factors.settings import factor_settings
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import organizations
from authapi.login.account_linking import linked_session
from authapi.login.browser import see_other, with_parameters
from authapi.login.cookies import BROWSER, SESSION, browser_of, set_cookie
from authapi.login.decision import Question, Step, next_step
from authapi.login.known_browser import remember_browser
from authapi.login.login import Login, kept_login, new_login, seen_anew
from authapi.login.new_browsers import BrowserLogin, browser_secret, keep_secret, meet
from authapi.login.parked import TooMuchParked, require_room
from authapi.login.protocol import CompleteLogin, Protocol, ProtocolRequest
from authapi.login.remembered_account import RememberedAccount, forget_account, remember_account
from authapi.login.remembered_browsers import remember, renew
from authapi.login.session_state import show_state
from authapi.login.sessions import add_proof, begin_session, end_session, renew_session
from authapi.login.transactions import CHOSEN, NEW_CODE, begin_anew, is_kept, keep, new_handle, note_progress
from authapi.models import Initiator, LoginTransaction, SecondFactorPolicy, Session
from authapi.services import sign_in_log
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.contexts import has_second_factor
from identity.hosts import HostMatch
from identity.languages import speaking
from identity.models import Connection, User
from identity.services.memberships import add_members

PAGES = {
    Step.ORGANIZATION: "/u/organization",
    Step.LOGIN: "/u/login",
    Step.CREATE: "/u/signup",
    Step.SECOND_FACTOR: "/u/mfa",
    Step.ENROLLMENT: "/u/mfa-enroll",
    Step.NEW_CODE: "/u/mfa/recovery-code",
    Step.SELECT_ACCOUNT: "/u/select-account",
    Step.INVITATION: "/u/invitation",
    Step.CONSENT: "/u/consent",
    Step.PASSKEY: "/u/passkey",
    Step.LINK: "/u/link-account",
}
# The name of the URL parameter that contains the handle of a login.
HANDLE = "state"
_SILENT_SUCCESS, _SILENT_FAILURE = "ssa", "fsa"


@dataclass(frozen=True)
class ProvenUser:
    """A user who has just logged in. Also contains the connection and the methods of this login.

    `upstream` is the data that a federated logout needs after a login at a provider. `identifier` is the name that the user typed; a cookie
    keeps it for the next login.
    """

    user: User
    connection: Connection
    methods: tuple[str, ...]
    upstream: str | None = field(default=None, repr=False)
    identifier: str = ""


def begin(http_request: HttpRequest, protocol: Protocol, request: ProtocolRequest) -> HttpResponse:
    """Answer a client's request: with the answer of its protocol, or with a redirect to the next page.

    Raises `RequestRefused` for an error to show to the user, because no URL of the client is trusted yet.
    """
    login = new_login(http_request, protocol, request)
    try:
        login.check()
        return advance(login)
    except TooMuchParked:
        # The user sees this error on a page. The client does not get it, because the client cannot change the limit, which counts for the
        # browser or for the IP address.
        raise
    except RequestRefused as refused:
        return refuse(login, refused)


def resume(http_request: HttpRequest, host: HostMatch, row: LoginTransaction, *, handle: str | None = None) -> HttpResponse:
    """Continue a login after one of its pages."""
    login = kept_login(http_request, host, row)
    try:
        return advance(login, handle=handle)
    except RequestRefused as refused:
        return refuse(login, refused)


def user_authenticated(login: Login, proven: ProvenUser, *, handle: str | None = None) -> HttpResponse:
    """Begin the session of a user who has just logged in, and continue the login.

    `login` began in this browser, or is new. `handle` is the handle of the login; if it is None, the pages get a new handle. The session
    cookie always gets a new value. So a session cookie that an attacker planted in the browser is useless (session fixation).
    """
    if organizations.question_of(login.client) is Question.AFTER_LOGIN:
        # The previous user may have chosen the organization. The new session must not use this choice.
        login.row.progress.pop(CHOSEN, None)
    login = seen_anew(login)
    try:
        proven = _of_session(login, proven)
    except RequestRefused as refused:
        return refuse(login, refused)
    # If accounts were linked, `proven` now contains the user of the primary account, because the linked user no longer exists.
    met, secret = _browser_login(login, proven), browser_secret(login.http_request)
    session, cookie = _session(login, proven)
    meet(met, secret)
    _note_login(login, session)
    try:
        _join_organization(login, proven)
        answer = advance(login, handle=handle)
    except RequestRefused as refused:
        answer = refuse(login, refused)
    _mark_browser(answer, login, proven, session, cookie)
    keep_secret(answer, secret)
    return answer


def _mark_browser(answer: HttpResponse, login: Login, proven: ProvenUser, session: Session, cookie: str) -> None:
    """Set the cookies of the browser: the session cookie, and the cookies that the next login in this browser reads."""
    _set_session(answer, session, cookie)
    if _is_wholly_proven(login, session):
        remember_browser(answer, proven.user)
    if proven.identifier:
        account = RememberedAccount(proven.identifier, proven.connection.pk)
        remember_account(answer, login.host.tenant_id, account, is_persistent=session.is_persistent)
    else:
        # The user typed no name in this login, so pages no longer offer the account of an earlier login.
        forget_account(login.http_request, answer)


def second_factor_proven(login: Login, kind: str, *, remembers: bool = False, handle: str | None = None) -> HttpResponse:
    """Record in the session that its user has proven a second factor or used the recovery code, and continue the login.

    `kind` is the kind of factor. `remembers` tells whether the user asked to remember this browser; with a policy that requires the factor
    only in new browsers, every browser is remembered. If the session has ended in the meantime, the login starts again. Raises
    `RequestRefused`.
    """
    session = login.session
    cookie = add_proof(session, methods_of(kind)) if session is not None else None
    if session is None or cookie is None:
        login.go_on_with(None)
        return advance(login, handle=handle)
    login.go_on_with(session)
    try:
        answer = advance(login, handle=handle)
    except RequestRefused as refused:
        answer = refuse(login, refused)
    _set_session(answer, session, cookie)
    remember_browser(answer, session.user)
    settings = factor_settings(login.host.tenant_id)
    is_new_device = policy_of(login.client, login.organization) is SecondFactorPolicy.NEW_DEVICE
    # A user who uses the recovery code has lost a factor, so the browser is not remembered.
    if settings.remembers_browsers and kind != RECOVERY_CODE and (remembers or is_new_device):
        remember(login.http_request, answer, session.user, lasting=settings.remembered_for)
    return answer


def advance(login: Login, *, handle: str | None = None) -> HttpResponse:
    """Run the next step: redirect to the page of this step, or answer the client. Raises `RequestRefused`."""
    try:
        step = next_step(login.wish, login.situation())
    except RequestRefused as refused:
        _note_silent(login, refused)
        raise
    if step is Step.RESPOND:
        return _answer(login)
    browser = browser_of(login.http_request)
    if not is_kept(login.row):
        require_room(login)
        login.row.language = login.language
        handle = keep(login.row, login.request.state, browser=browser)
    address = with_parameters(_page(login, step), {HANDLE: handle or new_handle(login.row)})
    answer = see_other(login.http_request, address)
    set_cookie(answer, BROWSER, browser)
    if login.presentation.keeps_opener:
        answer["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return answer


def refuse(login: Login, refused: RequestRefused) -> HttpResponse:
    """Have the protocol notify the client that its request has failed. Raises `RequestRefused` if the client has no trusted URL."""
    begin_anew(login.row)
    with speaking(login.language):
        return login.protocol.refuse(login.http_request, login.request, refused)


def _note_login(login: Login, session: Session) -> None:
    """Continue the login with the session of the user who has just logged in."""
    login.go_on_with(session)
    if login.row.session_id != session.pk:
        # A recovery code that waits to be shown belongs to the user of the previous session, so it must not be shown any more.
        login.row.progress.pop(NEW_CODE, None)
    login.row.session = session
    note_progress(login.row, has_logged_in=True)


def _is_wholly_proven(login: Login, session: Session) -> bool:
    """Tell whether the login needs no further second factor. If one is missing, the browser must not be marked as known."""
    try:
        return login.second_factor(session) is Due.NOTHING
    except RequestRefused:
        # The request was refused, so its requirements are unknown. Mark the browser only if the tenant offers no second factor.
        return not factor_settings(login.host.tenant_id).kinds


def _set_session(answer: HttpResponse, session: Session, cookie: str) -> None:
    seconds = max(1, int((session.expires_at - timezone.now()).total_seconds())) if session.is_persistent else None
    set_cookie(answer, SESSION, cookie, seconds=seconds)
    show_state(answer, session)


def _page(login: Login, step: Step) -> str:
    """Return the page of a step. If no connection accepts sign-ups, the login page replaces the sign-up page."""
    if step is Step.CREATE and not any(login.may_sign_up(connection) for connection in login.connections):
        return PAGES[Step.LOGIN]
    return PAGES[step]


def _of_session(login: Login, proven: ProvenUser) -> ProvenUser:
    """Return the user of the new session: the user of the present session if accounts are linked, otherwise the user who has logged in."""
    if not login.stated.link_to:
        return proven
    session = linked_session(login, proven.user, methods=proven.methods)
    return ProvenUser(session.user, session.connection, tuple(str(method["name"]) for method in session.methods))


def _browser_login(login: Login, proven: ProvenUser) -> BrowserLogin:
    """Return the facts about this login and its browser. After accounts were linked, the facts contain the user of the primary account."""
    present = login.session
    return BrowserLogin(
        proven.user,
        proven.connection,
        login.client,
        address=login.address,
        user_agent=login.user_agent,
        country=country_in(login.http_request.headers) or "",
        issuer=login.host.issuer,
        has_session=present is not None and present.user_id == proven.user.pk,
    )


def _session(login: Login, proven: ProvenUser) -> tuple[Session, str]:
    """Return the session after the login, with its cookie.

    If the present session has the same user and connection, it is renewed; otherwise a new session begins.
    """
    present = login.session
    if present is not None and (present.user_id, present.connection_id) == (proven.user.pk, proven.connection.pk):
        sender = {"ip": login.address, "user_agent": login.user_agent, "country": login.country}
        cookie = renew_session(present, methods=proven.methods, upstream=proven.upstream, **sender)
        if cookie is not None:
            return present, cookie
    elif present is not None:
        end_session(present, reason=Initiator.SESSION_REVOKED)
    return begin_session(
        tenant_id=login.host.tenant_id,
        user=proven.user,
        connection=proven.connection,
        methods=proven.methods,
        ip=login.address,
        user_agent=login.user_agent,
        is_persistent=sign_in_settings(login.host.tenant_id).is_session_persistent,
        organization=login.organization,
        upstream=proven.upstream,
        issuer=login.host.issuer,
        country=login.country,
    )


def _join_organization(login: Login, proven: ProvenUser) -> None:
    organization = login.organization
    if organization is not None and organizations.joins_on_login(organization, proven.connection):
        add_members(tenant_id=organization.tenant_id, organization_id=organization.pk, user_ids=[proven.user.user_id])


def _answer(login: Login) -> HttpResponse:
    """Have the protocol answer the client. Raises `RequestRefused`."""
    session = login.session
    if session is None:
        raise RequestRefused(LoginCase.LOGIN_REQUIRED)
    if login.organization is not None:
        organizations.check_membership(login.organization, session.user)
    elif organizations.usage_of(login.client) == "require":
        raise RequestRefused(LoginCase.ORGANIZATION_REQUIRED)
    complete = CompleteLogin(session, login.organization, login.terms(session.user))
    # The answer may be a page whose form posts itself to the client. The texts of this page have the language of the login.
    with speaking(login.language):
        answer = login.protocol.answer(login.http_request, login.request, complete)
    _note_silent(login)
    _renew_memory(login, answer, session)
    begin_anew(login.row)
    return answer


def _renew_memory(login: Login, answer: HttpResponse, session: Session) -> None:
    """Give a new secret to a remembered browser in which the second factor was skipped."""
    if login.row.progress.get("has_logged_in") and factor_settings(login.host.tenant_id).kinds and not has_second_factor(session.methods):
        renew(login.http_request, answer, session.user)


def _note_silent(login: Login, refused: RequestRefused | None = None) -> None:
    """Write a line to the sign-in log about the answer to a silent request, for which no page may be shown.

    A login or a refusal on a page writes its own line.
    """
    if login.wish.is_silent:
        sign_in_log.note(
            tenant_id=login.host.tenant_id,
            type=_SILENT_FAILURE if refused else _SILENT_SUCCESS,
            is_success=refused is None,
            description=refused.failure.description if refused else "",
            user=login.session.user if login.session else None,
            client=login.client,
            ip=login.address,
            user_agent=login.user_agent,
        )
