"""Renders the pages of a login, with the handle, the form token, and the allowed targets of forms."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from authapi.failures import RequestRefused
from authapi.login.cookies import BROWSER, form_token, read_cookie
from authapi.login.login import Login
from authapi.pages.hosted_page import hosted_page
from identity.languages import speaking


def render_page(login: Login, handle: str, template: str, context: dict[str, Any] | None = None, *, status: int = 200) -> HttpResponse:
    """Render a page of a login in its language."""
    shared = {"handle": handle, "form_token": form_token(read_cookie(login.http_request, BROWSER)), "client": login.client}
    with speaking(login.language):
        answer = hosted_page(
            login.http_request,
            login.host,
            template,
            {**shared, **(context or {})},
            status=status,
            form_targets=[login.presentation.form_target],
            organization_id=_organization_of(login),
        )
    if login.presentation.keeps_opener:
        answer["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return answer


def _organization_of(login: Login) -> str | None:
    """Return the organization whose brand the page shows; None if the wish names no organization or an invalid one."""
    try:
        return None if login.organization is None else str(login.organization.pk)
    except RequestRefused:
        return None
