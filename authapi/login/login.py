"""One login within one HTTP request: the wish of the client, the session of the browser, and the state so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from django.http import HttpRequest
from django.utils import timezone

from authapi.edge.countries import country_in
from authapi.factors.demands import LoginFacts, factors_due
from authapi.factors.policy import Due
from authapi.factors.settings import offered_contexts
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import organizations
from authapi.login.browser import address_of, user_agent_of
from authapi.login.connections import client_connections, takes_passwords, takes_sign_ups
from authapi.login.consents import needs_consent
from authapi.login.cookies import INVITED, SESSION, read_cookie
from authapi.login.decision import Offer, Question, Situation
from authapi.login.invitations import is_marked, offer_of, wished_invitation
from authapi.login.passkey_offers import offers_passkey
from authapi.login.protocol import Protocol, ProtocolRequest, protocol_named
from authapi.login.remembered_browsers import is_remembered
from authapi.login.sessions import find_session
from authapi.login.transactions import CHOSEN, NEW_CODE, kept_state
from authapi.login.wish import Presentation, Terms, Wish
from authapi.models import Client, Invitation, LoginTransaction, Session
from authapi.tokens import contexts
from identity.hosts import HostMatch
from identity.languages import enabled_languages, spoken_language
from identity.models import Connection, Organization, User


@dataclass
class Login:
    """A login within one HTTP request. Caches its lookups for that request.

    `stated` is the wish as the protocol has read it; a refused wish is stored there, too. `row` is saved when the first page is shown.
    """

    http_request: HttpRequest
    protocol: Protocol
    request: ProtocolRequest
    stated: Wish
    row: LoginTransaction
    _session: Session | None = field(default=None, init=False)
    _is_session_known: bool = field(default=False, init=False)

    @property
    def host(self) -> HostMatch:
        return self.request.host

    @property
    def client(self) -> Client:
        return self.request.client

    @property
    def presentation(self) -> Presentation:
        """How the pages of the login are shown. Also set for a refused wish."""
        return self.stated.presentation

    @cached_property
    def language(self) -> str:
        """The language of the pages and mails of this login. It stays the same after the first page.

        It is the first enabled language that the client requests (OpenID Connect Core 1.0, 3.1.2.1: `ui_locales`), otherwise the language
        of the browser.
        """
        tenant_id, kept = self.host.tenant_id, self.row.language
        if kept and kept in enabled_languages(tenant_id):
            return kept
        header = self.http_request.headers.get("Accept-Language", "")
        return spoken_language(tenant_id, wished=self.presentation.languages, accept_language=header)

    @property
    def wish(self) -> Wish:
        """The wish of the client. Raises `RequestRefused`, for example if settings that changed during the login refuse the wish."""
        if self.stated.refusal is not None:
            raise self.stated.refusal
        return self.stated

    @property
    def session(self) -> Session | None:
        """The session of the browser, or the session that this login has begun."""
        if not self._is_session_known:
            self.go_on_with(find_session(tenant_id=self.host.tenant_id, cookie=read_cookie(self.http_request, SESSION)))
        return self._session

    def go_on_with(self, session: Session | None) -> None:
        """Use this session from now on instead of the session of the browser's cookie."""
        self._session, self._is_session_known = session, True

    @cached_property
    def organization(self) -> Organization | None:
        """The organization of the login: the organization in the wish, otherwise the user's choice. Raises `RequestRefused`."""
        named = self.wish.organization or self._chosen
        return organizations.wished_organization(self.client, named or "")

    @cached_property
    def invitation(self) -> Invitation | None:
        """The invitation in the wish, in any state; None if the wish contains no invitation of this client and organization."""
        wish = self.wish
        if not wish.invitation:
            return None
        if not wish.organization:
            raise RequestRefused(LoginCase.INVITATION_WITHOUT_ORGANIZATION)
        return wished_invitation(self.client, wish.invitation, wish.organization)

    @property
    def offer(self) -> Offer | None:
        """The state of the invitation of the wish. None if there is no invitation, or if the user of the session has accepted it."""
        return offer_of(self.invitation, self.session) if self.wish.invitation else None

    @property
    def invited_email(self) -> str:
        """The email address of the only user who may log in or sign up; empty without an open invitation."""
        invitation = self.invitation
        return invitation.email if invitation is not None and self.offer is Offer.OPEN else ""

    @property
    def login_hint(self) -> str:
        """The user name with which forms are filled in at first; empty if it is not known."""
        return self.invited_email or self.wish.login_hint

    @property
    def has_proven_mailbox(self) -> bool:
        """Whether this browser has opened the link in the mail of the invitation."""
        return self.invitation is not None and is_marked(self.invitation, read_cookie(self.http_request, INVITED))

    def may_sign_up(self, connection: Connection) -> bool:
        """Tell whether the user may create an account at this connection: the connection accepts sign-ups, or the user is invited.

        For an invited user, the organization must accept sign-ups at the connection, or the browser must have opened the link in the mail.
        """
        if takes_sign_ups(connection) or not self.invited_email:
            return takes_sign_ups(connection)
        is_switched_on = self.organization is not None and organizations.takes_sign_ups_in(self.organization, connection)
        return takes_passwords(connection) and (is_switched_on or self.has_proven_mailbox)

    @property
    def question(self) -> Question | None:
        """The point of the login at which the user must choose an organization.

        None if the organization is already known, or if the user need not choose.
        """
        is_settled = self.wish.organization or self._chosen is not None
        return None if is_settled else organizations.question_of(self.client)

    @property
    def _chosen(self) -> str | None:
        """The id of the chosen organization, "" if the user chose none, None if no page has asked."""
        if CHOSEN in self.row.progress:
            return str(self.row.progress[CHOSEN])
        # A silent login shows no page on which to choose, so it uses the organization of the session.
        if self.wish.is_silent and self.session is not None and self.session.organization_id and organizations.question_of(self.client):
            return str(self.session.organization_id)
        return None

    @cached_property
    def connections(self) -> list[Connection]:
        """The connections of this login, which are enabled for the client and, in a login for an organization, for the organization."""
        enabled = client_connections(self.client)
        if self.organization is not None:
            enabled = organizations.connections_within(self.organization, enabled)
        if self.wish.connection:
            enabled = [one for one in enabled if self.wish.connection in (one.name, *one.realms)]
        if self.invitation is not None and self.invitation.connection_id:
            enabled = [one for one in enabled if one.pk == self.invitation.connection_id]
        if not enabled:
            raise RequestRefused(LoginCase.UNKNOWN_CONNECTION if self.wish.connection else LoginCase.NO_CONNECTION)
        return enabled

    @property
    def address(self) -> str:
        """The IP address of the browser. Forwarding headers are used only behind trusted proxies."""
        return address_of(self.http_request)

    @property
    def country(self) -> str:
        """The country of the browser (ISO 3166-1), as the proxy in front of the service reports it; empty if unknown."""
        return country_in(self.http_request.headers) or ""

    @property
    def user_agent(self) -> str:
        return user_agent_of(self.http_request)

    def terms(self, user: User | None) -> Terms:
        """Return the terms that the client gets for the user. Raises `RequestRefused`, also for a refused wish."""
        _ = self.wish
        return self.protocol.terms(self.request, user, self.organization)

    def check(self) -> None:
        """Raise `RequestRefused` for errors that are known before the user logs in."""
        if self.offer is Offer.GONE:
            # The page of the invitation shows this error to the user before any other error.
            return
        _ = self.wish, self.connections
        if self.wish.requires_factors and not set(self.wish.factors) & set(self._offered_contexts()):
            # The tenant offers none of the contexts that the client requires, so no login can meet them: refuse before a page is shown.
            raise RequestRefused(LoginCase.FACTORS_NOT_MET)
        self.terms(None)

    def situation(self) -> Situation:
        """Return the known facts about the user. Raises `RequestRefused` if the user must not get what the client requests."""
        session, offer = self.session, self.offer
        if offer is Offer.GONE:
            return Situation(has_session=session is not None, offer=offer)
        if session is None:
            return Situation(question=self.question, offer=offer)
        is_usable = self._is_usable(session)
        second_factor = self.second_factor(session)
        progress = self.row.progress if self.row.session_id == session.pk else {}
        return Situation(
            has_session=True,
            is_own=self._is_own(session),
            is_usable=is_usable,
            meets_factors=self._meets_factors(session, second_factor),
            second_factor=second_factor,
            has_code_to_keep=bool(progress.get(NEW_CODE)),
            age=(timezone.now() - session.authenticated_at).total_seconds(),
            has_logged_in=bool(progress.get("has_logged_in")),
            has_selected=bool(progress.get("has_selected")),
            has_consented=bool(progress.get("has_consented")),
            has_agreed_to_link=bool(progress.get("has_agreed_to_link")),
            # An invited user becomes a member only by accepting the invitation, so the terms are checked after the user has accepted.
            needs_consent=is_usable and self.question is None and offer is None and self._needs_consent(session.user),
            offers_passkey=is_usable and offers_passkey(self.http_request, self.host, session, progress) and not self.stated.link_to,
            question=self.question,
            offer=offer,
        )

    def _needs_consent(self, user: User) -> bool:
        return needs_consent(self.client, user, self.terms(user))

    def second_factor(self, session: Session) -> Due:
        """Return which second factor the user of a session must still prove, at this client and in this browser."""
        return factors_due(
            LoginFacts(self.client, self.organization, session.user, contexts.names_of(session.methods)),
            wished=self.wish.factors,
            is_required=self.wish.requires_factors,
            is_asked=self.wish.asks_for_factor,
            is_browser_remembered=lambda: is_remembered(self.http_request, session.user),
        )

    @property
    def is_half_proven(self) -> bool:
        """Whether the session still needs a second factor.

        Until the second factor is proven, the user may not allow, choose or accept anything. False for a refused request: the refusal
        is raised later, when the answer is made.
        """
        try:
            return self.session is not None and self.second_factor(self.session) is not Due.NOTHING
        except RequestRefused:
            return False

    def _meets_factors(self, session: Session, second_factor: Due) -> bool:
        wish = self.wish
        if not wish.requires_factors or contexts.met(wish.factors, session.methods, among=self._offered_contexts()):
            return True
        is_promised = second_factor in {Due.PROVE, Due.ENROLL}
        return is_promised and bool(contexts.met(wish.factors, [{"name": contexts.SECOND_FACTOR}], among=self._offered_contexts()))

    def _offered_contexts(self) -> tuple[str, ...]:
        return offered_contexts(self.host.tenant_id)

    def _is_own(self, session: Session) -> bool:
        """Tell whether the client may use this session. If the single sign-on of the client is off, the client must
        already take part in the session."""
        return not self.client.settings.get("sso_disabled") or session.session_clients.filter(client=self.client).exists()

    def _is_usable(self, session: Session) -> bool:
        hint = self.wish.user_hint
        if hint is not None and not hint.names(session.user.user_id):
            return False
        if self.wish.subjects and session.user.user_id not in self.wish.subjects:
            return False
        if self.wish.link_to:
            # The user links another account to the account of the session. If the wish names the connection of that other account,
            # `self.connections` contains only this connection. So compare the session with all connections of the client.
            enabled = client_connections(self.client)
            return session.user.user_id == self.wish.link_to and any(one.pk == session.connection_id for one in enabled)
        return any(one.pk == session.connection_id for one in self.connections)


def new_login(http_request: HttpRequest, protocol: Protocol, request: ProtocolRequest) -> Login:
    """Return the `Login` of a new request. Raises `RequestRefused` if there is no trusted URL for the answer."""
    row = LoginTransaction(tenant_id=request.host.tenant_id, client=request.client, protocol=protocol.name)
    return Login(http_request, protocol, request, protocol.wish_of(request), row)


def kept_login(http_request: HttpRequest, host: HostMatch, row: LoginTransaction) -> Login:
    """Return the `Login` of a stored request. Raises `RequestRefused` if its client or trusted URL no longer exists."""
    if row.client.revoked_at is not None:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=row.client.client_id)
    try:
        protocol = protocol_named(row.protocol)
    except KeyError as error:
        raise RequestRefused(LoginCase.REQUEST_EXPIRED) from error
    request = ProtocolRequest(host, row.client, kept_state(row))
    return Login(http_request, protocol, request, protocol.wish_of(request), row)


def seen_anew(login: Login) -> Login:
    """Return the same login with empty caches."""
    return Login(login.http_request, login.protocol, login.request, login.stated, login.row)
