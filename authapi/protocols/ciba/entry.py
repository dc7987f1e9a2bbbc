"""The entry for CIBA in the table of protocols. The state of a `ProtocolRequest` contains the primary key of its `CibaRequest`.

CIBA has no redirect URI: the client polls for its tokens, and the browser stays on a page of this service.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from authapi.factors.settings import offered_contexts
from authapi.failures import RequestRefused
from authapi.failures.ciba import CibaCase
from authapi.failures.logins import LoginCase
from authapi.grants.ciba import GRANT
from authapi.login.browser import address_of, see_other, user_agent_of
from authapi.login.cookies import SESSION, read_cookie
from authapi.login.protocol import CompleteLogin, Protocol, ProtocolRequest, RoundTrip, SessionEnd
from authapi.login.sessions import find_session
from authapi.login.wish import Circumstance, Presentation, Prompt, Terms, Wish
from authapi.models import CibaRequest
from authapi.protocols.ciba.notifying import PATH
from authapi.protocols.oauth.parameters import Parameters
from authapi.protocols.oauth.terms import terms_of
from authapi.protocols.oauth.unreviewed import warned
from authapi.services import sign_in_log
from authapi.tokens import contexts
from authapi.tokens.asked import asked_of
from authapi.tokens.ciba_requests import Approval, approve_request, deny_request, request_with_key, why_over
from identity.languages import written_time
from identity.models import Organization, User

NAME = "ciba"
DONE_PATH, DENIED_PATH = f"{PATH}/done", f"{PATH}/denied"
_DENIED = "ciba_denied"
# Refresh tokens with this scope are revoked when the session ends. An approval does not belong to a session, so the scope is dropped.
_ONLINE_SCOPE = "online_access"


def state_of(row: CibaRequest) -> dict[str, int]:
    """Return the state for this row: its primary key."""
    return {"request": row.pk}


def wish_of(request: ProtocolRequest) -> Wish:
    """Return a wish that allows only a login of the user of the request, and that always shows the consent page.

    A consent that the user has given earlier does not cover this request.
    """
    row, presentation = _row(request), Presentation(form_target="'self'")
    if row is None or not request.client.allows_grant_type(GRANT):
        return Wish(presentation, RequestRefused(CibaCase.REQUEST_EXPIRED))
    over = why_over(row, now=timezone.now())
    return Wish(
        presentation,
        RequestRefused(over) if over is not None else None,
        prompts=frozenset({Prompt.CONSENT}),
        subjects=frozenset({row.user.user_id}),
        factors=tuple(row.acr_values.split()),
    )


def terms(request: ProtocolRequest, user: User | None, organization: Organization | None) -> Terms:
    """Return the terms. Raises `RequestRefused` if `user` is not the user of the request."""
    row = _row(request)
    if row is None:
        raise RequestRefused(CibaCase.REQUEST_EXPIRED)
    if user is not None and user.pk != row.user_id:
        raise RequestRefused(CibaCase.OTHER_USER)
    further = asked_of(row.asked)
    details = further.details if further else ()
    asked = terms_of(request, parameters_of(row.scope, row.audience), user, organization, details=details)
    warning = _(
        "Allow this only if you expect the request, and if you see the same message in the application. If you did not expect it, "
        "do not allow it."
    )
    return warned(replace(asked, circumstances=_circumstances(row), warning=warning), request.client)


def parameters_of(scope: str, audience: str) -> Parameters:
    """Return what a client requests as parameters of an authorization request."""
    lasting = " ".join(value for value in scope.split() if value != _ONLINE_SCOPE)
    return Parameters({name: value for name, value in {"scope": lasting, "audience": audience}.items() if value}, frozenset())


def answer(http_request: HttpRequest, request: ProtocolRequest, login: CompleteLogin) -> HttpResponse:
    approval = Approval(
        login.session, login.terms.audience, login.terms.scopes, login.organization, address_of(http_request), _met(request, login)
    )
    approve_request(request.host.tenant_id, _key(request), approval)
    return see_other(http_request, DONE_PATH)


def refuse(http_request: HttpRequest, request: ProtocolRequest, refused: RequestRefused) -> HttpResponse:
    """If the user denied the request, record this for the client. Show any other error to the user, who can open the link again."""
    tenant_id, row = request.host.tenant_id, _row(request)
    session = find_session(tenant_id=tenant_id, cookie=read_cookie(http_request, SESSION))
    is_own = row is not None and session is not None and session.user_id == row.user_id
    if refused.case is LoginCase.CONSENT_DENIED and session is not None:
        deny_request(tenant_id, _key(request), session.user)
        sign_in_log.note(
            tenant_id=tenant_id,
            type=_DENIED,
            is_success=False,
            description=refused.failure.description,
            user=session.user,
            client=request.client,
            ip=address_of(http_request),
            user_agent=user_agent_of(http_request),
        )
        return see_other(http_request, DENIED_PATH)
    if refused.case is CibaCase.REQUEST_OVER and row is not None and is_own:
        # The user pressed the button twice, or went back.
        return see_other(http_request, DONE_PATH if row.status == CibaRequest.Status.APPROVED else DENIED_PATH)
    if refused.case is LoginCase.LOGIN_REQUIRED:
        # The user who has just logged in is not the user of the request.
        raise RequestRefused(CibaCase.OTHER_USER)
    raise refused


def end_session(ending: SessionEnd) -> Sequence[RoundTrip]:
    """Do nothing: an approval does not belong to the session in which it was given."""
    return ()


def _key(request: ProtocolRequest) -> int:
    return int(request.state["request"])


def _row(request: ProtocolRequest) -> CibaRequest | None:
    """Return the row of a request. None if the row was deleted, or if its client is not the client of the request."""
    row = request_with_key(request.host.tenant_id, _key(request))
    return row if row is not None and row.application_id == request.client.pk else None


def _met(request: ProtocolRequest, login: CompleteLogin) -> str:
    """Return the first requested `acr` value that the login satisfies. Empty if the login satisfies none."""
    row, offered = _row(request), offered_contexts(request.host.tenant_id)
    return contexts.met(row.acr_values.split(), login.session.methods, among=offered) if row is not None else ""


def _circumstances(row: CibaRequest) -> tuple[Circumstance, ...]:
    """Return the facts by which a user recognizes the request."""
    place = row.initial_ip or ""
    if place and row.initial_country:
        place = _("%(address)s, country %(country)s") % {"address": place, "country": row.initial_country}
    found = (
        Circumstance(_("Message of the application"), row.binding_message, is_code=True),
        Circumstance(_("Time of the request (UTC)"), written_time(row.created)),
        Circumstance(_("The request comes from"), place),
    )
    return tuple(circumstance for circumstance in found if circumstance.text)


CIBA = Protocol(NAME, wish_of, terms, answer, refuse, end_session)
