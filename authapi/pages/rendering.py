"""What the pages of a waiting request have in common: its handle, the token of their forms, where these may lead."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.utils import translation

from authapi.login.cookies import BROWSER, form_token, read_cookie
from authapi.login.visit import Visit
from authapi.pages.hosted_page import hosted_page
from authapi.protocols.oauth.responses import form_target
from authapi.tenant_settings import sign_in_settings


def visit_page(visit: Visit, handle: str, template: str, context: dict[str, Any] | None = None, *, status: int = 200) -> HttpResponse:
    """Render a page of a visit in the language that its client asked for, as far as the tenant has it."""
    shared = {"handle": handle, "form_token": form_token(read_cookie(visit.request, BROWSER)), "client": visit.client}
    with translation.override(language_of(visit)):
        answer = hosted_page(
            visit.request,
            visit.host,
            template,
            {**shared, **(context or {})},
            status=status,
            form_targets=[form_target(visit.target)],
        )
    if visit.target.mode == "web_message":
        answer["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return answer


def language_of(visit: Visit) -> str:
    """Return the first language of `ui_locales` that the tenant has, else the tenant's first (Core 1.0, 3.1.2.1)."""
    enabled = sign_in_settings(visit.host.tenant_id).enabled_locales or ("en",)
    wanted = visit.parameters.get("ui_locales").split()[:20]
    for language in wanted:
        for candidate in (language, language.partition("-")[0]):
            if candidate in enabled:
                return candidate
    return enabled[0]
