"""The sections of the account page, and the checks before each section: settings, session, form token and new login.

Also sets the language of a section.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from authapi.accounts.self_service.address import may_change_address
from authapi.accounts.self_service.password import has_password
from authapi.factors.demands import LoginFacts, factors_due
from authapi.factors.kinds import EMAIL, PHONE, TOTP, WEBAUTHN_PLATFORM, WEBAUTHN_ROAMING
from authapi.factors.policy import Due
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from authapi.login import flow
from authapi.login.connections import client_connections
from authapi.login.cookies import SESSION, is_own_form, read_cookie
from authapi.login.protocol import ProtocolRequest
from authapi.login.remembered_browsers import is_remembered
from authapi.login.sessions import find_session
from authapi.models import Client, Session
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.account import access, activity, adding, address, data, factors, identities, password, profile
from authapi.protocols.account.entry import ACCOUNT, state_of
from authapi.protocols.account.visit import Proof, Section, Visit
from authapi.services.account_client import account_client
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.contexts import names_of
from identity.hosts import HostMatch
from identity.languages import own_languages, speak, spoken_language

_LONGEST_KEPT = 254
OVERVIEW = Section("", gettext_lazy("Your account"), "", lambda visit: visit.show("overview"), is_offered=lambda visit: False)
_SETUPS = {
    TOTP: gettext_lazy("Set up an authenticator app"),
    PHONE: gettext_lazy("Set up codes by text message"),
    EMAIL: gettext_lazy("Set up codes by email"),
    WEBAUTHN_ROAMING: gettext_lazy("Set up a security key"),
    WEBAUTHN_PLATFORM: gettext_lazy("Set up this device"),
}
SECTIONS = (
    Section("profile", gettext_lazy("Profile"), gettext_lazy("Your name, picture and language"), profile.view),
    Section(
        "email",
        gettext_lazy("Email address"),
        gettext_lazy("Where we send messages to you"),
        address.view,
        proof=Proof.PAGE,
        is_offered=lambda visit: may_change_address(visit.user),
        kept=("email",),
    ),
    Section(
        "password",
        gettext_lazy("Password"),
        gettext_lazy("Choose another password"),
        password.view,
        proof=Proof.PAGE,
        is_offered=lambda visit: has_password(visit.user),
    ),
    Section(
        "two-step",
        gettext_lazy("Two-step verification"),
        gettext_lazy("What you need to log in besides the password"),
        factors.second_factors_view,
        proof=Proof.ACTS,
        is_offered=factors.offers_second_factors,
    ),
    Section(adding.ADD, gettext_lazy("Add a method"), "", adding.choice_view, Proof.PAGE, adding.offers_kinds, parent="two-step"),
    *(
        Section(adding.place_for(kind), title, "", adding.view_of(kind), Proof.PAGE, adding.offers_kind(kind), parent="two-step")
        for kind, title in _SETUPS.items()
    ),
    Section(
        "passkeys",
        gettext_lazy("Passkeys"),
        gettext_lazy("Log in without a password"),
        factors.passkeys_view,
        proof=Proof.ACTS,
        is_offered=factors.offers_passkeys,
    ),
    Section(
        adding.ADD_PASSKEY,
        gettext_lazy("Add a passkey"),
        "",
        adding.passkey_view,
        Proof.PAGE,
        adding.offers_passkey,
        parent="passkeys",
    ),
    Section(
        adding.NAME_PASSKEY,
        gettext_lazy("Name your passkey"),
        "",
        adding.name_view,
        Proof.ACTS,
        factors.offers_passkeys,
        parent="passkeys",
    ),
    Section("sessions", gettext_lazy("Sessions and devices"), gettext_lazy("Where you are logged in"), access.sessions_view),
    Section("applications", gettext_lazy("Applications"), gettext_lazy("What you allow applications to do"), access.applications_view),
    Section(
        "identities",
        gettext_lazy("Linked accounts"),
        gettext_lazy("Other accounts that open this one"),
        identities.view,
        proof=Proof.ACTS,
    ),
    Section("activity", gettext_lazy("Recent activity"), gettext_lazy("Logins and changes of the last days"), activity.view),
    Section(
        "data",
        gettext_lazy("Your data"),
        gettext_lazy("Download what is stored about you"),
        data.export_view,
        proof=Proof.ACTS,
        is_offered=lambda visit: visit.page.data_export,
    ),
    Section(
        "delete",
        gettext_lazy("Delete account"),
        gettext_lazy("Delete your account permanently"),
        data.deletion_view,
        proof=Proof.PAGE,
        is_offered=lambda visit: visit.page.deletion,
        is_dangerous=True,
    ),
)


def account_urls() -> list[URLPattern]:
    """Return the URL patterns of the account page."""
    pages = [path(section.path.removeprefix("/"), _page(section), name=section.route) for section in SECTIONS]
    overview = path(OVERVIEW.path.removeprefix("/"), _page(OVERVIEW), name="hosted_account")
    return [overview, *pages, path(data.DELETED_PATH.removeprefix("/"), data.deleted_page)]


def _page(section: Section) -> Callable[[HttpRequest], HttpResponse]:
    @tenant_page(f"account_{section.name or 'overview'}", methods=("GET",) if section is OVERVIEW else ("GET", "POST"))
    def page(request: HttpRequest, host: HostMatch) -> HttpResponse:
        if not sign_in_settings(host.tenant_id).account_page.enabled:
            raise RequestRefused(RequestCase.UNSERVED)
        client = account_client(host.tenant_id)
        session = _usable_session(request, host, client)
        if session is None:
            return _log_in(request, host, client, state_of(section.name))
        _speak_for(session, request)
        return _answered(Visit(request, host, client, session, section, SECTIONS))

    return page


def _answered(visit: Visit) -> HttpResponse:
    """Answer a user who is logged in. Begins a login first if the section requires a new login."""
    section = visit.section
    if section is not OVERVIEW and not section.is_offered(visit):
        raise RequestRefused(RequestCase.UNSERVED)
    is_form = visit.request.method == "POST"
    if is_form and not is_own_form(visit.request, read_cookie(visit.request, SESSION)):
        # The token is bound to the session. A form of another site, of another user or of an earlier session is refused.
        visit, is_form = replace(visit, problem=_("This page was open for too long. Check what it says now, then try again.")), False
    if not visit.is_proven and (section.proof is Proof.PAGE or (is_form and section.proof is Proof.ACTS)):
        kept = {name: visit.request.POST.get(name, "")[:_LONGEST_KEPT] for name in section.kept} if is_form else {}
        return _log_in(visit.request, visit.host, visit.client, state_of(section.name, session=visit.session, kept=kept))
    return section.view(replace(visit, is_form=is_form))


def _log_in(request: HttpRequest, host: HostMatch, client: Client, state: dict[str, object]) -> HttpResponse:
    return flow.begin(request, ACCOUNT, ProtocolRequest(host, client, state))


def _usable_session(request: HttpRequest, host: HostMatch, client: Client) -> Session | None:
    """Return the session of the browser if this page accepts it.

    The login that this page begins must use the same rules. If the login accepted a session that this page refuses, the login and this page
    would redirect to each other without end.
    """
    session = find_session(tenant_id=host.tenant_id, cookie=read_cookie(request, SESSION))
    if session is None or all(one.pk != session.connection_id for one in client_connections(client)):
        return None
    facts = LoginFacts(client, None, session.user, names_of(session.methods))
    # A session begins with the first factor, before the second factor is proven.
    due = factors_due(facts, is_browser_remembered=lambda: is_remembered(request, session.user))
    return session if due is Due.NOTHING else None


def _speak_for(session: Session, request: HttpRequest) -> None:
    """Switch to the language that the user has chosen, otherwise to the language of the browser."""
    header = request.headers.get("Accept-Language", "")
    speak(spoken_language(session.tenant_id, wished=own_languages(session.user), accept_language=header))
