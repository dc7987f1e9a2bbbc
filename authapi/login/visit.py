"""One browser on its way to one answer: the request it brings, the client behind it, and the session it has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from authapi.edge.addresses import client_address
from authapi.failures import Case, RequestRefused
from authapi.login import organizations
from authapi.login.connections import client_connections
from authapi.login.consents import needs_consent
from authapi.login.cookies import SESSION, read_cookie
from authapi.login.decision import Situation
from authapi.login.organizations import Question
from authapi.login.sessions import find_session
from authapi.login.transactions import CHOSEN
from authapi.models import AuthorizationRequest, Client, Session
from authapi.protocols.oauth.authorization_request import Asked, ClientFacts, Target
from authapi.protocols.oauth.parameters import Parameters, checked, target_of
from authapi.tokens.entitlements import UserEntitlement, user_entitlement
from authapi.tokens.id_token_hints import read_hint
from identity.hosts import HostMatch
from identity.models import Connection, Organization, User


@dataclass
class Visit:
    """Made for each request anew; what it has looked up counts for that request. `row` is there once people are asked."""

    request: HttpRequest
    host: HostMatch
    client: Client
    parameters: Parameters
    target: Target
    row: AuthorizationRequest | None = None

    @cached_property
    def asked(self) -> Asked:
        """The checked request. Raises `RequestRefused`, also for what may have changed at the client while people logged in."""
        return checked(self.parameters, facts_of(self.client), self.target)

    @cached_property
    def session(self) -> Session | None:
        return find_session(tenant_id=self.host.tenant_id, cookie=read_cookie(self.request, SESSION))

    @cached_property
    def organization(self) -> Organization | None:
        """The organization that the login is for: the one that was asked for, else the one that was chosen. Raises `RequestRefused`."""
        named = self.asked.organization or self._chosen
        return organizations.asked_organization(self.client, named or "")

    @property
    def question(self) -> Question | None:
        """What is still to be asked about organizations."""
        is_settled = self.asked.organization or self._chosen is not None
        return None if is_settled else organizations.question_of(self.client)

    @property
    def _chosen(self) -> str | None:
        """The id of the organization that was chosen, "" for none, None where nobody was asked."""
        if self.row is not None and CHOSEN in self.row.progress:
            return str(self.row.progress[CHOSEN])
        # Nobody can be asked: the organization that the session was begun for, or chosen in, goes on.
        if self.asked.is_silent and self.session is not None and self.session.organization_id and organizations.question_of(self.client):
            return str(self.session.organization_id)
        return None

    @cached_property
    def connections(self) -> list[Connection]:
        """The connections that people may come through: those of the client, and of the organization where there is one."""
        enabled = client_connections(self.client)
        if self.organization is not None:
            enabled = organizations.connections_within(self.organization, enabled)
        if self.asked.connection:
            enabled = [one for one in enabled if self.asked.connection in (one.name, *one.realms)]
        if not enabled:
            raise RequestRefused(Case.UNKNOWN_CONNECTION if self.asked.connection else Case.NO_CONNECTION)
        return enabled

    @property
    def waiting(self) -> AuthorizationRequest:
        """The request that a page is about; a page without one is a fault of ours."""
        if self.row is None:
            raise RuntimeError("This visit has no request that waits.")
        return self.row

    @property
    def address(self) -> str:
        """Where the browser is, as far as that can be believed."""
        return address_of(self.request)

    @property
    def user_agent(self) -> str:
        return self.request.headers.get("User-Agent", "")

    def entitlement(self, user: User | None) -> UserEntitlement:
        """Return what the client gets. Raises `RequestRefused`."""
        return user_entitlement(
            host=self.host,
            client=self.client,
            user=user,
            audience=self.asked.audience,
            scope=self.asked.scope,
            organization=self.organization,
        )

    def check(self) -> None:
        """Raise `RequestRefused` for what can be refused before anybody has logged in."""
        _ = self.asked, self.connections
        self.entitlement(None)

    def situation(self) -> Situation:
        """Return what is known of the person. Raises `RequestRefused` where the user at hand may not have what was asked."""
        session = self.session
        if session is None:
            return Situation(question=self.question)
        is_usable = self._is_usable(session)
        progress = self.row.progress if self.row is not None and self.row.session_id == session.pk else {}
        return Situation(
            has_session=True,
            is_own=self._is_own(session),
            is_usable=is_usable,
            age=(timezone.now() - session.authenticated_at).total_seconds(),
            has_logged_in=bool(progress.get("has_logged_in")),
            has_selected=bool(progress.get("has_selected")),
            has_consented=bool(progress.get("has_consented")),
            needs_consent=is_usable and self.question is None and needs_consent(self.client, session.user, self.entitlement(session.user)),
            question=self.question,
        )

    def _is_own(self, session: Session) -> bool:
        """Tell whether the client may use a session without a login of its own; one without single sign-on has to take part in it."""
        return not self.client.settings.get("sso_disabled") or session.session_clients.filter(client=self.client).exists()

    def _is_usable(self, session: Session) -> bool:
        if self.asked.id_token_hint:
            hint = read_hint(self.asked.id_token_hint, tenant_id=self.host.tenant_id)
            if hint.subject != session.user.user_id:
                return False
        return any(one.pk == session.connection_id for one in self.connections)


def visit_of(request: HttpRequest, host: HostMatch, row: AuthorizationRequest) -> Visit:
    """Return the visit of a request that waits. Raises `RequestRefused` when its client or callback is gone."""
    if row.client.revoked_at is not None:
        raise RequestRefused(Case.UNKNOWN_CLIENT, client_id=row.client.client_id)
    parameters = Parameters(row.parameters, frozenset())
    return Visit(request, host, row.client, parameters, target_of(parameters, facts_of(row.client)), row)


def facts_of(client: Client) -> ClientFacts:
    """Return what of a client decides about its requests."""
    return ClientFacts(
        client_id=client.client_id,
        callbacks=tuple(client.redirect_uris.split()),
        web_origins=tuple(client.settings.get("web_origins") or ()),
        grant_types=frozenset(client.grant_types),
        is_public=client.is_public,
        # RFC 9700, 2.1.1: S256 for everybody but a client that is registered as one that does not conform.
        takes_plain=not client.is_public and client.settings.get("oidc_conformant") is False,
        # Contract, 3.3: no wildcard under a compliance level.
        takes_wildcards=(client.settings.get("compliance_level") or "none") == "none",
        is_native=client.app_type == "native",
    )


def address_of(request: HttpRequest) -> str:
    """Return the address that a request comes from, as far as it can be believed."""
    return client_address(request.META.get("REMOTE_ADDR") or "", request.headers.get("X-Forwarded-For", ""), settings.TRUSTED_PROXIES)
