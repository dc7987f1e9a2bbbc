"""Which language a page is in where no login says so: the one of the mailed link, else the browser's."""

from __future__ import annotations

from django.http import HttpRequest

from identity.languages import enabled_languages, speak, spoken_language


def browser_language(request: HttpRequest, tenant_id: str, *, wished: str = "") -> str:
    """Return the language for a request: the first of `wished` (as in `ui_locales`) that the tenant enables, else the browser's."""
    return spoken_language(tenant_id, wished=wished.split(), accept_language=request.headers.get("Accept-Language", ""))


def speak_for(language: str, tenant_id: str) -> None:
    """Speak the language that a link was mailed in, if the tenant still enables it."""
    if language in enabled_languages(tenant_id):
        speak(language)
