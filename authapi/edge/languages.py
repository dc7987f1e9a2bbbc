"""Chooses the language of a response by the headers of the request."""

from __future__ import annotations

from collections.abc import Mapping

from identity.languages import enabled_languages, named_language


def request_language(headers: Mapping[str, str], tenant_id: str) -> str:
    """Return the language that the application requests, otherwise the language of the browser. Empty if the tenant has enabled neither.

    Client libraries send `X-Request-Language` (contract 1.10), because a page of an application may have another language than the browser.
    The names in `headers` must be in lower case, unless `headers` is the case-insensitive mapping of Django.
    """
    named = headers.get("x-request-language", "").replace(",", " ").split()
    return named_language(enabled_languages(tenant_id), wished=named, accept_language=headers.get("accept-language", ""))
