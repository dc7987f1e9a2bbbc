"""The account page as an entry of the table of protocols. The state contains the name of the requested page, never a URL.

No client requests the login: a login begins when a user opens the URL or a link, or starts an act that requires a new login.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core import signing
from django.http import HttpRequest, HttpResponse

from authapi.accounts.self_service.proofs import PROOF_SECONDS, wished_contexts
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.failures.requests import RequestCase
from authapi.login.browser import see_other, with_parameters
from authapi.login.protocol import CompleteLogin, Protocol, ProtocolRequest, RoundTrip, SessionEnd
from authapi.login.wish import Presentation, Prompt, Terms, Wish
from authapi.models import Session
from authapi.pages.application_link import ACCOUNT_PATH as PATH
from authapi.tenant_settings import sign_in_settings
from identity.models import Organization, User

NAME = "account"
# Some forms require a new login before they are saved. For this number of seconds after the login, the form shows again what the user
# typed before the login. During the login, the state of the login contains this input.
_KEPT_SECONDS = 3600
_KEPT, DONE, FAILED = "kept", "done", "failed"
# Values of `failed` in the URL: the user has canceled, or the other account cannot be linked.
_NOT_LINKED, _CANNOT_LINK = "not-linked", "cannot-link"


def state_of(place: str, *, session: Session | None = None, kept: Mapping[str, str] | None = None, link: str = "") -> dict[str, Any]:
    """Return the state of a login that ends at the section `place`.

    If `session` is given, its user must log in again. If `link` (the name of a connection) is given, the login is for the account to link.

    `kept` is the input of the user, without secrets. Only the user who typed it gets it back.
    """
    state: dict[str, Any] = {"place": place}
    if session is not None:
        state |= {"user": session.user.user_id, "hint": session.user.email or session.user.username or ""}
    further = {"kept": dict(kept or {}), "link": link}
    return state | {name: value for name, value in further.items() if value}


def kept_fields(session: Session, sent: str) -> dict[str, str]:
    """Return what this user typed before a login; empty for input of another user."""
    try:
        found = signing.loads(sent, salt=_salt(session), max_age=_KEPT_SECONDS) if sent else {}
    except signing.BadSignature:
        return {}
    return found if isinstance(found, dict) else {}


def wish_of(request: ProtocolRequest) -> Wish:
    state, presentation = request.state, Presentation(form_target="'self'")
    if not sign_in_settings(request.host.tenant_id).account_page.enabled:
        return Wish(presentation, RequestRefused(RequestCase.UNSERVED))
    is_proof = bool(state.get("user"))
    link = state.get("link", "")
    return Wish(
        presentation,
        connection=link,
        # The login is for the account to link, so the hint must not name the present account.
        login_hint="" if link else state.get("hint", ""),
        prompts=frozenset({Prompt.LOGIN}) if is_proof else frozenset(),
        max_age=PROOF_SECONDS if is_proof else None,
        link_to=state["user"] if link else "",
        factors=_contexts(request) if is_proof and not link else (),
    )


def _contexts(request: ProtocolRequest) -> tuple[str, ...]:
    user = User.objects.of(request.host.tenant_id).select_related("connection").filter(user_id=request.state["user"]).first()
    return () if user is None else wished_contexts(request.client, user)


def terms(request: ProtocolRequest, user: User | None, organization: Organization | None) -> Terms:
    """Return empty terms: the page shows users their own data, and no application gets access."""
    return Terms()


def answer(http_request: HttpRequest, request: ProtocolRequest, login: CompleteLogin) -> HttpResponse:
    state, session = request.state, login.session
    parameters = {DONE: "linked"} if state.get("link") else {}
    if state.get("kept") and state.get("user") == session.user.user_id:
        parameters = {_KEPT: signing.dumps(state["kept"], salt=_salt(session), compress=True)}
    return _no_store(see_other(http_request, with_parameters(place_of(state["place"]), parameters)))


def refuse(http_request: HttpRequest, request: ProtocolRequest, refused: RequestRefused) -> HttpResponse:
    """Return to the list of linked accounts if linking failed. Raise every other refusal: no client waits for an answer."""
    if not request.state.get("link") or refused.case not in (LegacyCase.LINK_DENIED, LegacyCase.CANNOT_LINK):
        raise refused
    code = _NOT_LINKED if refused.case is LegacyCase.LINK_DENIED else _CANNOT_LINK
    return _no_store(see_other(http_request, with_parameters(place_of(request.state["place"]), {FAILED: code})))


def end_session(ending: SessionEnd) -> Sequence[RoundTrip]:
    """Do nothing: the account page needs no notification, because it looks up the session for each request."""
    return ()


def place_of(name: str) -> str:
    """Return the URL of a section. The empty name is the overview."""
    return f"{PATH}/{name}" if name else PATH


def _no_store(made: HttpResponse) -> HttpResponse:
    made["Cache-Control"] = "no-store"
    return made


def _salt(session: Session) -> str:
    return f"authapi.account:{session.tenant_id}:{session.user.user_id}"


ACCOUNT = Protocol(NAME, wish_of, terms, answer, refuse, end_session)
