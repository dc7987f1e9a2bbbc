"""How a page for end users is answered: in the looks of its tenant, in no cache, in no frame, with one script of ours at most."""

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

# Shows a password on demand; the pages work without it.
_SCRIPT = "theme/hosted.js"


def with_rate(answer: HttpResponse, rate: Rate | None) -> HttpResponse:
    """Put the headers of the bucket that refused a request on its page. Without one, the bucket that paid shows (`config.server.rates`)."""
    for name, value in rate.headers.items() if rate is not None else ():
        answer[name] = value
    return answer


def tenant_host(request: HttpRequest) -> HostMatch:
    """Return the tenant whose page was asked for; raise `Http404` where none, or none that is active, answers."""
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
    """Render `hosted/<template>.html` for a tenant, in the language that is spoken.

    `form_targets` are origins to which the answer of a form may redirect. `hides_address` is for pages whose address holds a
    secret: no other site learns it. Their forms are sent without an origin, so that Django's CSRF check would refuse them. The looks
    of the organization that a login is for come before those of the tenant. A page with a password among its `fields` loads the
    script that shows it, before the `scripts` of its own; the policy of a page without any allows none.
    """
    brand = brand_of(host.tenant_id, organization_id)
    shown = {"brand": brand, "scripts": [], **(context or {})}
    if has_secret(shown.get("fields")):
        shown["scripts"] = [_SCRIPT, *shown["scripts"]]
    answer = render(request, f"hosted/{template}.html", shown, status=status)
    answer["Content-Security-Policy"] = page_policy(brand, form_targets, has_script=bool(shown["scripts"]))
    answer["Cache-Control"] = "no-store"
    # Caches that keep pages all the same must not answer one person in the language of another.
    answer["Content-Language"] = get_language() or DEFAULT
    patch_vary_headers(answer, ["Accept-Language"])
    answer["Referrer-Policy"] = "no-referrer" if hides_address else "same-origin"
    return answer
