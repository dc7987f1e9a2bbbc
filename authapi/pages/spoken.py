"""The language of a page outside a login: the language of the mailed link, otherwise the language of the browser."""

from __future__ import annotations

from django.http import HttpRequest

from identity.languages import enabled_languages, speak, spoken_language


def browser_language(request: HttpRequest, tenant_id: str, *, wished: str = "") -> str:
    """Return the first language in `wished` (as in `ui_locales`) that the tenant enables, otherwise the browser's language."""
    return spoken_language(tenant_id, wished=wished.split(), accept_language=request.headers.get("Accept-Language", ""))


def speak_for(language: str, tenant_id: str) -> None:
    """Switch to the language of the mail with the link, if the tenant still enables it."""
    if language in enabled_languages(tenant_id):
        speak(language)
