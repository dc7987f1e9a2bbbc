"""The account page as an entry of the table of protocols. The state names the page that a person wanted, never an address.

No client asks for the login: a person types the address, follows a link, or does something that needs a new proof.
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
# What a person had typed before the login, on the way through it: as long as a login may take.
_KEPT_SECONDS = 3600
_KEPT, DONE, FAILED = "kept", "done", "failed"
# The person has changed their mind, or the other account cannot be linked.
_NOT_LINKED, _CANNOT_LINK = "not-linked", "cannot-link"


def state_of(place: str, *, session: Session | None = None, kept: Mapping[str, str] | None = None, link: str = "") -> dict[str, Any]:
    """Return the state of a login that ends at the section `place`; with a session it proves anew, and `link` names a connection.

    `kept` is what the person typed, without secrets: it comes back to the same user only.
    """
    state: dict[str, Any] = {"place": place}
    if session is not None:
        state |= {"user": session.user.user_id, "hint": session.user.email or session.user.username or ""}
    further = {"kept": dict(kept or {}), "link": link}
    return state | {name: value for name, value in further.items() if value}


def kept_fields(session: Session, sent: str) -> dict[str, str]:
    """Return what this user had typed before a login, empty for anything that is not theirs."""
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
        # The account that is linked is another one, so the hint is not its name.
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
    """Return nothing to allow: the page shows people what is theirs, and no application gets anything."""
    return Terms()


def answer(http_request: HttpRequest, request: ProtocolRequest, login: CompleteLogin) -> HttpResponse:
    state, session = request.state, login.session
    parameters = {DONE: "linked"} if state.get("link") else {}
    if state.get("kept") and state.get("user") == session.user.user_id:
        parameters = {_KEPT: signing.dumps(state["kept"], salt=_salt(session), compress=True)}
    return _no_store(see_other(http_request, with_parameters(place_of(state["place"]), parameters)))


def refuse(http_request: HttpRequest, request: ProtocolRequest, refused: RequestRefused) -> HttpResponse:
    """Go back to the list of linked accounts where a link came to nothing; there is no other address to answer to."""
    if not request.state.get("link") or refused.case not in (LegacyCase.LINK_DENIED, LegacyCase.CANNOT_LINK):
        raise refused
    code = _NOT_LINKED if refused.case is LegacyCase.LINK_DENIED else _CANNOT_LINK
    return _no_store(see_other(http_request, with_parameters(place_of(request.state["place"]), {FAILED: code})))


def end_session(ending: SessionEnd) -> Sequence[RoundTrip]:
    """Do nothing: the page is no participant, and asks for the session itself each time."""
    return ()


def place_of(name: str) -> str:
    """Return the address of a section; the empty name is that of the overview."""
    return f"{PATH}/{name}" if name else PATH


def _no_store(made: HttpResponse) -> HttpResponse:
    made["Cache-Control"] = "no-store"
    return made


def _salt(session: Session) -> str:
    return f"authapi.account:{session.tenant_id}:{session.user.user_id}"


ACCOUNT = Protocol(NAME, wish_of, terms, answer, refuse, end_session)
