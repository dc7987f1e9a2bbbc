"""How a tenant looks on the hosted pages: name, logo, colours, where help is.

Colours come as a style sheet of their own, since no page has inline styles.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from authapi.tenant_settings import SignInSettings, sign_in_settings
from identity.hosts import resolve_host

PATH = "/u/brand.css"

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_BLACK, _WHITE = "#000000", "#ffffff"
# WCAG 2.2, "relative luminance": black and white contrast equally with it.
_MIDDLE = 0.179


@dataclass(frozen=True)
class Brand:
    """What the base of the hosted pages shows."""

    name: str
    logo: str
    stylesheet: str
    support_url: str
    support_email: str

    @property
    def image_origin(self) -> str:
        """Where the logo is loaded from, for the content policy; empty without a logo."""
        parts = urlsplit(self.logo)
        return f"{parts.scheme}://{parts.netloc}" if self.logo else ""


def brand_of(tenant_id: str) -> Brand:
    """Return the looks of a tenant, a second old at most."""
    settings = sign_in_settings(tenant_id)
    return Brand(
        name=settings.friendly_name,
        logo=settings.logo_url if _is_image_address(settings.logo_url) else "",
        stylesheet=_stylesheet_address(settings),
        support_url=settings.support_url if settings.support_url.startswith("https://") else "",
        support_email=settings.support_email,
    )


@require_safe
def brand_stylesheet(request: HttpRequest) -> HttpResponse:
    """Return the colours of the tenant that answers on this host. The address changes with them, so it may be kept."""
    match = resolve_host(request.META.get("HTTP_HOST", ""))
    if match is None or not match.is_active:
        raise Http404
    answer = HttpResponse(stylesheet(sign_in_settings(match.tenant_id)), content_type="text/css; charset=utf-8")
    answer["Cache-Control"] = "public, max-age=31536000, immutable"
    return answer


def stylesheet(settings: SignInSettings) -> str:
    """Return the colours that a tenant has set as CSS; text on them is black or white, whichever can be read."""
    rules = []
    if brand := _colour(settings.primary_color):
        rules.append(f":root {{ --brand: {brand}; --on-brand: {_readable_on(brand)}; }}")
    if background := _colour(settings.page_background):
        rule = f":root {{ --bg: {background}; --on-bg: {_readable_on(background)}; }}"
        # Who prefers dark pages is not given a bright one.
        is_dark = luminance(background) < _MIDDLE
        rules.append(rule if is_dark else f"@media (prefers-color-scheme: light) {{ {rule} }}")
    return "\n".join(rules)


def luminance(colour: str) -> float:
    """Return the relative luminance of `#rrggbb` (WCAG 2.2)."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def page_policy(brand: Brand, form_targets: Any = ()) -> str:
    """Return the content policy of a hosted page: our own files, the logo, no script; forms lead here and where their answer redirects.

    Browsers hold redirects of a form's answer against `form-action`, so a page that ends at a client names its origin.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "style-src 'self'",
            " ".join(("img-src 'self'", *filter(None, [brand.image_origin]))),
            "base-uri 'none'",
            " ".join(("form-action 'self'", *form_targets)),
            "frame-ancestors 'none'",
        )
    )


def _stylesheet_address(settings: SignInSettings) -> str:
    css = stylesheet(settings)
    return f"{PATH}?v={hashlib.sha256(css.encode()).hexdigest()[:16]}" if css else ""


def _is_image_address(address: str) -> bool:
    parts = urlsplit(address)
    # What stands in a content policy must not be able to end a directive.
    return parts.scheme == "https" and re.fullmatch(r"[a-zA-Z0-9.:\[\]-]+", parts.netloc) is not None


def _colour(value: str) -> str:
    return value if _COLOUR.fullmatch(value) else ""


def _readable_on(colour: str) -> str:
    return _BLACK if luminance(colour) > _MIDDLE else _WHITE
