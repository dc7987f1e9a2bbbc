"""The language that the headers of a request ask for."""

from __future__ import annotations

from collections.abc import Mapping

from identity.languages import enabled_languages, named_language


def request_language(headers: Mapping[str, str], tenant_id: str) -> str:
    """Return the language that an application names for its user, otherwise that of the browser. Empty if the tenant enables neither.

    Client libraries send `X-Request-Language` (contract 1.10), because a page of an application may have another language than the browser.
    `headers` is case-insensitive if it is Django's; otherwise its names must be in lower case.
    """
    named = headers.get("x-request-language", "").replace(",", " ").split()
    return named_language(enabled_languages(tenant_id), wished=named, accept_language=headers.get("accept-language", ""))
