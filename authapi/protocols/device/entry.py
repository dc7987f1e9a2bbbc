"""The device flow as an entry of the table of protocols.

The state of a request contains the primary key of the device's row, and the typed code.

A device login has no redirect URI: the device polls for its tokens, and the browser stays on a page of this service.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from authapi.failures import RequestRefused
from authapi.failures.device import DeviceCase
from authapi.failures.logins import LoginCase
from authapi.login.browser import address_of, see_other, user_agent_of
from authapi.login.cookies import SESSION, read_cookie
from authapi.login.protocol import CompleteLogin, Protocol, ProtocolRequest, RoundTrip, SessionEnd
from authapi.login.sessions import find_session
from authapi.login.wish import Circumstance, Presentation, Prompt, Terms, Wish
from authapi.models import DeviceGrant
from authapi.protocols.oauth.parameters import Parameters
from authapi.protocols.oauth.terms import terms_of
from authapi.protocols.oauth.unreviewed import warned
from authapi.services import sign_in_log
from authapi.tokens.asked import asked_of
from authapi.tokens.device_codes import Approval, approve_device, deny_device, device_with_key, why_over
from identity.models import Organization, User

NAME = "device"
PATH = "/activate"
DONE_PATH, DENIED_PATH = f"{PATH}/done", f"{PATH}/denied"
_CANCELLED = "fdecc"
_LONGEST_AGENT = 120
# Refresh tokens with this scope are revoked when the session ends. A device has no session, so the scope is dropped.
_ONLINE_SCOPE = "online_access"


def state_of(row: DeviceGrant, shown: str) -> dict[str, str | int]:
    """Return the state of a request: the row, and the code as pages show it."""
    return {"grant": row.pk, "user_code": shown}


def wish_of(request: ProtocolRequest) -> Wish:
    """Return a wish that always shows the consent page: an attacker with the device may have sent the user to this page (RFC 8628, 5.4)."""
    row = _row(request)
    over = DeviceCase.CODE_EXPIRED if row is None else why_over(row, now=timezone.now())
    refusal = RequestRefused(over) if over is not None else None
    return Wish(Presentation(form_target="'self'"), refusal, prompts=frozenset({Prompt.CONSENT}))


def terms(request: ProtocolRequest, user: User | None, organization: Organization | None) -> Terms:
    row = _row(request)
    if row is None:
        raise RequestRefused(DeviceCase.CODE_EXPIRED)
    further = asked_of(row.asked)
    details = further.details if further else ()
    asked = terms_of(request, parameters_of(row.scope, row.audience), user, organization, details=details)
    warning = _(
        "Allow this only if you see the same code on a device in front of you. If another person sent you the code, do not allow it."
    )
    return warned(replace(asked, circumstances=_circumstances(request, row), warning=warning), request.client)


def parameters_of(scope: str, audience: str) -> Parameters:
    """Return the scope and the audience that a device requests, as parameters of an authorization request."""
    lasting = " ".join(value for value in scope.split() if value != _ONLINE_SCOPE)
    return Parameters({name: value for name, value in {"scope": lasting, "audience": audience}.items() if value}, frozenset())


def answer(http_request: HttpRequest, request: ProtocolRequest, login: CompleteLogin) -> HttpResponse:
    organization, ip = login.organization, address_of(http_request)
    approval = Approval(login.session, login.terms.audience, login.terms.scopes, organization, ip)
    approve_device(request.host.tenant_id, int(request.state["grant"]), approval)
    return see_other(http_request, DONE_PATH)


def refuse(http_request: HttpRequest, request: ProtocolRequest, refused: RequestRefused) -> HttpResponse:
    """If the user denied the device, record this for the device. Show any other error to the user, who can enter the code again."""
    tenant_id, key = request.host.tenant_id, int(request.state["grant"])
    session = find_session(tenant_id=tenant_id, cookie=read_cookie(http_request, SESSION))
    if refused.case is LoginCase.CONSENT_DENIED:
        deny_device(tenant_id, key)
        sign_in_log.note(
            tenant_id=tenant_id,
            type=_CANCELLED,
            is_success=False,
            description=refused.failure.description,
            user=session.user if session is not None else None,
            client=request.client,
            ip=address_of(http_request),
            user_agent=user_agent_of(http_request),
        )
        return see_other(http_request, DENIED_PATH)
    row = device_with_key(tenant_id, key)
    if refused.case is DeviceCase.CODE_OVER and row is not None and session is not None and row.user_id == session.user_id:
        # The user pressed the button twice, or went back.
        return see_other(http_request, DONE_PATH if row.status == DeviceGrant.AUTHORIZED else DENIED_PATH)
    raise refused


def end_session(ending: SessionEnd) -> Sequence[RoundTrip]:
    """Do nothing: a device does not belong to the session in which it was allowed."""
    return ()


def _row(request: ProtocolRequest) -> DeviceGrant | None:
    return device_with_key(request.host.tenant_id, int(request.state["grant"]))


def _circumstances(request: ProtocolRequest, row: DeviceGrant) -> tuple[Circumstance, ...]:
    """Return the facts by which a user recognizes the device. All facts are shown, because the device chooses the name that it reports."""
    place = row.initial_ip or ""
    if place and row.initial_country:
        place = _("%(address)s, country %(country)s") % {"address": place, "country": row.initial_country}
    found = (
        Circumstance(_("Code on the device"), str(request.state["user_code"]), is_code=True),
        Circumstance(_("Name that the device reports"), row.initial_user_agent[:_LONGEST_AGENT]),
        Circumstance(_("The request comes from"), place),
    )
    return tuple(circumstance for circumstance in found if circumstance.text)


DEVICE = Protocol(NAME, wish_of, terms, answer, refuse, end_session)
