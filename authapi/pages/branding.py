"""The brand of a tenant on the hosted pages: name, logo, colors, font, layout and support contacts.

The brand is applied with a style sheet and pictures, because the pages have no inline styles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from authapi.looks.addresses import PICTURES, digest_in, origin_of, picture_path
from authapi.looks.current import Looks, looks_of
from authapi.models import BrandingPicture
from authapi.tenant_settings import sign_in_settings
from identity.hosts import resolve_host

PATH = "/u/brand.css"
PICTURE_ROUTE = f"{PICTURES.removeprefix('/')}<str:name>"
ORGANIZATION = "organization"
_ORGANIZATION_ID = re.compile(r"org_[A-Za-z0-9]{16}")
_KEPT = "public, max-age=31536000, immutable"
# A browser that opens the picture directly must load nothing else.
_PICTURE_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"


@dataclass(frozen=True)
class Brand:
    """The brand of a tenant, as the base template of the hosted pages reads it."""

    name: str
    logo: str
    favicon: str
    stylesheet: str
    support_url: str
    support_email: str
    body_class: str
    providers_first: bool
    image_origins: tuple[str, ...]
    font_origin: str


def brand_of(tenant_id: str, organization_id: str | None = None) -> Brand:
    """Return the brand of a tenant, overridden by the brand of an organization. The result may be up to one second old."""
    return brand_from(looks_of(tenant_id, organization_id), tenant_id, organization_id)


def brand_from(looks: Looks, tenant_id: str, organization_id: str | None = None) -> Brand:
    """Return the brand that pages show: made from `looks`, with the support contacts of the tenant."""
    settings = sign_in_settings(tenant_id)
    images = (looks.logo, looks.favicon, looks.background)
    return Brand(
        name=looks.name,
        logo=looks.logo,
        favicon=looks.favicon,
        stylesheet=_stylesheet_address(looks, organization_id),
        support_url=settings.support_url if settings.support_url.startswith("https://") else "",
        support_email=settings.support_email,
        body_class=f"layout-{looks.layout}{' has-background' if looks.background else ''}",
        providers_first=looks.shows_providers_first,
        image_origins=tuple(sorted({origin for image in images if (origin := origin_of(image))})),
        font_origin=origin_of(looks.font),
    )


@require_safe
def brand_stylesheet(request: HttpRequest) -> HttpResponse:
    """Return the style sheet of the tenant of this host. Cacheable, because the URL contains the version of the looks."""
    named = request.GET.get(ORGANIZATION, "")
    looks = looks_of(_tenant_here(request), named if _ORGANIZATION_ID.fullmatch(named) else None)
    answer = HttpResponse(looks.stylesheet, content_type="text/css; charset=utf-8")
    # If the URL contains another version, such as the version before a change, the response must not be cached.
    answer["Cache-Control"] = _KEPT if request.GET.get("v") == looks.version else "no-store"
    return answer


@require_safe
def brand_picture(request: HttpRequest, name: str) -> HttpResponse:
    """Return an uploaded picture of the tenant of this host. Cacheable, because the URL contains a digest of the content."""
    return picture_answer(_tenant_here(request), name)


def picture_answer(tenant_id: str, name: str) -> HttpResponse:
    """Return a picture of this tenant by the last part of its URL. Raises `Http404` for a picture that is unknown or of another tenant."""
    digest = digest_in(f"{PICTURES}{name}")
    row = BrandingPicture.objects.of(tenant_id).filter(digest=digest).first() if digest else None
    if row is None or picture_path(row.digest, row.ending) != f"{PICTURES}{name}":
        raise Http404
    answer = HttpResponse(bytes(row.data), content_type=row.media_type)
    answer["Cache-Control"] = _KEPT
    answer["Content-Security-Policy"] = _PICTURE_POLICY
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Content-Disposition"] = "inline"
    return answer


def page_policy(brand: Brand, form_targets: Iterable[Any] = (), *, has_script: bool = False, framed_by: str = "'none'") -> str:
    """Return the Content-Security-Policy of a hosted page.

    The policy allows files of this host, and the pictures and the font of the tenant. It allows scripts only if `has_script` is true.

    Browsers also check redirects after a form against `form-action`. So `form_targets` names the origins of the clients to which
    a page redirects. `framed_by` is the source that may show the page in a frame: only the preview in the admin sets it.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "style-src 'self'",
            *(["script-src 'self'"] if has_script else []),
            " ".join(("img-src 'self'", *brand.image_origins)),
            *([f"font-src {brand.font_origin}"] if brand.font_origin else []),
            "base-uri 'none'",
            " ".join(("form-action 'self'", *form_targets)),
            f"frame-ancestors {framed_by}",
        )
    )


def _tenant_here(request: HttpRequest) -> str:
    match = resolve_host(request.META.get("HTTP_HOST", ""))
    if match is None or not match.is_active:
        raise Http404
    return match.tenant_id


def _stylesheet_address(looks: Looks, organization_id: str | None) -> str:
    if not looks.version:
        return ""
    named = {ORGANIZATION: organization_id} if organization_id else {}
    return f"{PATH}?{urlencode({'v': looks.version, **named})}"
