"""Lets scripts see whether a session has changed (OpenID Connect Session Management 1.0, 2 and 3.2).

A cookie that scripts of this host can read contains a keyed digest of the session. The digest grants no access, does not reveal the
session, and differs for each session.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.clients.origins import web_origin_of
from authapi.login.cookies import SESSION, SESSION_STATE, drop_cookie, read_cookie, set_cookie
from authapi.login.sessions import find_session
from authapi.models import Client, Session
from authapi.tenant_settings import sign_in_settings

_SALT_BYTES = 12


def session_state(session: Session, client: Client, address: str) -> str:
    """Return the `session_state` of an answer that is sent to the URL `address`.

    Empty if the tenant does not use session management, or if `address` has no web origin.
    """
    origin = web_origin_of(address)
    if not origin or not _is_managed(session.tenant_id):
        return ""
    salt = secrets.token_urlsafe(_SALT_BYTES)
    text = f"{client.client_id} {origin} {browser_state(session)} {salt}"
    return f"{hashlib.sha256(text.encode()).hexdigest()}.{salt}"


def browser_state(session: Session) -> str:
    """Return the value of the cookie that scripts read. Applications know the id of the session, but lack the key to compute the value."""
    key = next(iter(settings.DIGEST_KEYS.values()))
    text = f"session-state\x00{session.tenant_id}\x00{session.pk}"
    return base64.urlsafe_b64encode(hmac.digest(key.encode(), text.encode(), hashlib.sha256)).decode().rstrip("=")


def show_state(answer: HttpResponse, session: Session) -> None:
    """Set the cookie that scripts read. For a persistent session, the cookie expires when the session would expire without further use."""
    if not _is_managed(session.tenant_id):
        return
    seconds = max(1, int((session.idle_expires_at - timezone.now()).total_seconds())) if session.is_persistent else None
    set_cookie(answer, SESSION_STATE, browser_state(session), seconds=seconds, is_readable=True)


def hide_ended(request: HttpRequest, answer: HttpResponse, *, tenant_id: str) -> None:
    """If the session no longer exists, drop the cookie that scripts read."""
    shown = read_cookie(request, SESSION_STATE)
    if shown and find_session(tenant_id=tenant_id, cookie=read_cookie(request, SESSION)) is None:
        drop_cookie(answer, SESSION_STATE)


def forget_session(request: HttpRequest, answer: HttpResponse) -> None:
    """Delete the cookie of the session, and the cookie that scripts read, in the browser."""
    drop_cookie(answer, SESSION)
    if read_cookie(request, SESSION_STATE):
        drop_cookie(answer, SESSION_STATE)


def _is_managed(tenant_id: str) -> bool:
    return sign_in_settings(tenant_id).manages_sessions
