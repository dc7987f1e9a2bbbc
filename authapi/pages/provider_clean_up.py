"""`wsignoutcleanup1.0`: a WS-Federation provider ends the login in this browser, usually from a frame (WS-Federation 1.2, 13.2.4)."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse

from authapi.login.browser import address_of, user_agent_of
from authapi.login.cookies import SESSION, read_cookie
from authapi.login.session_state import forget_session
from authapi.login.sessions import end_session, find_session
from authapi.models import Initiator, Session
from authapi.services import sign_in_log
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.wsfed.login import wsfed_provider
from authapi.upstream.wsfed.options import is_wsfed
from identity.hosts import HostMatch


def provider_clean_up(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """End the session that began at the provider.

    If there is no such session, or if another site sends the request, no session ends. The response is the same in all cases.

    The request has no signature. Only its referrer shows which site sent it.
    """
    answer = HttpResponse("", content_type="text/plain; charset=utf-8")
    answer["Cache-Control"] = "no-store"
    session = find_session(tenant_id=host.tenant_id, cookie=read_cookie(request, SESSION))
    if session is None or not _is_asked_by_provider(request, session):
        return answer
    end_session(session, reason=Initiator.IDP_LOGOUT)
    sign_in_log.note(
        tenant_id=host.tenant_id,
        type="slo",
        is_success=True,
        user=session.user,
        connection=session.connection.name,
        ip=address_of(request),
        user_agent=user_agent_of(request),
        details={"initiator": str(Initiator.IDP_LOGOUT)},
    )
    forget_session(request, answer)
    return answer


def _is_asked_by_provider(request: HttpRequest, session: Session) -> bool:
    connection = session.connection
    if not is_wsfed(connection.strategy, connection.options):
        return False
    try:
        endpoint = wsfed_provider(connection).endpoint
        return _origin(request.headers.get("Referer", "")) == _origin(endpoint)
    except (UpstreamFailed, ValueError):
        return False


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc
