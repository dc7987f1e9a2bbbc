"""Renders pages for end users. Pages have the brand of the tenant, and load scripts only from this host.

They cannot be cached or framed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language

from authapi.edge.throttling import Rate
from authapi.pages.branding import brand_of, page_policy
from authapi.pages.form_fields import has_secret
from identity.hosts import HostMatch, resolve_host
from identity.languages import DEFAULT

# The script with the button that shows a password. The pages work without this script.
_SCRIPT = "theme/hosted.js"


def with_rate(answer: HttpResponse, rate: Rate | None) -> HttpResponse:
    """Add the rate headers of the limit that refused a request. For other responses, `config.server.rates` adds the rate headers."""
    for name, value in rate.headers.items() if rate is not None else ():
        answer[name] = value
    return answer


def tenant_host(request: HttpRequest) -> HostMatch:
    """Return the host whose page was requested. Raises `Http404` if no active tenant has this host."""
    match = resolve_host(request.META.get("HTTP_HOST", ""))
    if match is None or not match.is_active:
        raise Http404
    return match


def hosted_page(
    request: HttpRequest,
    host: HostMatch,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
    form_targets: Iterable[str] = (),
    hides_address: bool = False,
    organization_id: str | None = None,
) -> HttpResponse:
    """Render `hosted/<template>.html` for a tenant, in the active language.

    `form_targets` are origins to which the response to a form may redirect. `hides_address` is for pages with a secret in their URL: the
    browser then sends no referrer, not even to this host. The browser also sends forms of the page with the header `Origin: null`, which
    Django's CSRF check would refuse; `tenant_page` turns this check off. The brand of the organization of a login overrides the brand of
    the tenant. A page with a password among its `fields` loads the script that shows the password, before its own `scripts`. The content
    security policy of a page without scripts allows no script.
    """
    brand = brand_of(host.tenant_id, organization_id)
    shown = {"brand": brand, "scripts": [], **(context or {})}
    if has_secret(shown.get("fields")):
        shown["scripts"] = [_SCRIPT, *shown["scripts"]]
    answer = render(request, f"hosted/{template}.html", shown, status=status)
    answer["Content-Security-Policy"] = page_policy(brand, form_targets, has_script=bool(shown["scripts"]))
    answer["Cache-Control"] = "no-store"
    # Some caches ignore `no-store`. With `Vary`, such a cache does not serve a user the page in the language of another user.
    answer["Content-Language"] = get_language() or DEFAULT
    patch_vary_headers(answer, ["Accept-Language"])
    answer["Referrer-Policy"] = "no-referrer" if hides_address else "same-origin"
    return answer
