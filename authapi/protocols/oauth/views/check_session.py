"""`/oidc/check_session`: the page that applications load in a hidden frame to check the session (Session Management 1.0, 3.2)."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from authapi.login.cookies import SESSION_STATE, cookie_name
from authapi.pages.tenant_page import tenant_page
from authapi.tenant_settings import sign_in_settings
from identity.hosts import HostMatch

PATH = "oidc/check_session"
# This page loads scripts of this host only. Any page may show it in a frame: a page learns nothing from it without a `session_state` for
# the origin of that page.
_POLICY = "default-src 'none'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors https: http:"
_KEPT = "public, max-age=300"


@tenant_page("check_session", methods=("GET",))
def check_session(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Return the page, which is the same for all browsers. Raises `Http404` if the tenant has disabled session management."""
    if not sign_in_settings(host.tenant_id).manages_sessions:
        raise Http404
    answer = render(request, "oidc/check_session.html", {"cookie": cookie_name(SESSION_STATE)})
    answer["Content-Security-Policy"] = _POLICY
    answer["Cache-Control"] = _KEPT
    # Other sites must be able to frame the page.
    answer.xframe_options_exempt = True
    return answer
