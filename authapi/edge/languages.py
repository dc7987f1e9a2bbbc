"""In which language a request is asked, as its headers say."""

from __future__ import annotations

from collections.abc import Mapping

from identity.languages import enabled_languages, named_language


def request_language(headers: Mapping[str, str], tenant_id: str) -> str:
    """Return the language that an application names for its user, else the one of the browser; empty where the tenant enables neither.

    `X-Request-Language` is how client libraries say it (contract 1.10): a page of an application may be in another language than
    the browser. Names of headers are in any case where `headers` is Django's, else in lower case.
    """
    named = headers.get("x-request-language", "").replace(",", " ").split()
    return named_language(enabled_languages(tenant_id), wished=named, accept_language=headers.get("accept-language", ""))
