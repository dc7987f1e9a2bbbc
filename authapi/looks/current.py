"""The looks of a page: the looks of the tenant, overridden by the looks of the login's organization. `services.branding` writes both."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from authapi.looks.addresses import is_font, is_picture
from authapi.looks.colors import is_color, opaque, readable_on
from authapi.looks.stylesheet import font_rules, plain_stylesheet, theme_stylesheet
from authapi.looks.theme import Theme, value_at, with_value
from authapi.models import BrandingTheme
from authapi.tenant_settings import sign_in_settings
from foundation.memory.ttl_cache import Remembered
from identity.models import Organization

# Time within which other processes see a change.
_REMEMBERED_SECONDS = 1.0


@dataclass(frozen=True)
class Looks:
    """How pages look. Without a theme, `theme` is empty, and pages use `primary_color` and `page_background`."""

    name: str
    logo_url: str
    favicon_url: str
    primary_color: str
    page_background: str
    font_url: str
    font_stack: str
    theme: Mapping[str, Any]

    @property
    def logo(self) -> str:
        """The URL of the logo; empty without a logo, or if the theme hides the logo."""
        if self.theme and value_at(self.theme, ("widget", "logo_position")) == "none":
            return ""
        own = str(value_at(self.theme, ("widget", "logo_url")))
        return next((address for address in (own, self.logo_url) if is_picture(address)), "")

    @property
    def favicon(self) -> str:
        """The URL of the icon in the browser tab."""
        return self.favicon_url if is_picture(self.favicon_url) else ""

    @property
    def background(self) -> str:
        """The URL of the background picture."""
        address = str(value_at(self.theme, ("page_background", "background_image_url")))
        return address if is_picture(address) else ""

    @property
    def font(self) -> str:
        """The URL of the font; empty for a system font."""
        own = str(value_at(self.theme, ("fonts", "font_url")))
        return next((address for address in (own, self.font_url) if is_font(address)), "")

    @property
    def layout(self) -> str:
        """The position of the box: center, left or right."""
        return str(value_at(self.theme, ("page_background", "page_layout")))

    @property
    def shows_providers_first(self) -> bool:
        """Whether the buttons of providers are above the password form."""
        return bool(value_at(self.theme, ("widget", "social_buttons_layout")) == "top")

    @property
    def stylesheet(self) -> str:
        """The CSS variables of the pages; empty if nothing is set."""
        colors = theme_stylesheet(self.theme) if self.theme else plain_stylesheet(self.primary_color, self.page_background)
        return "\n".join(filter(None, (colors, font_rules(self.font, self.font_stack))))

    @property
    def version(self) -> str:
        """A digest that changes with the style sheet; empty without a style sheet."""
        css = self.stylesheet
        return hashlib.sha256(css.encode()).hexdigest()[:16] if css else ""


def looks_of(tenant_id: str, organization_id: str | None = None) -> Looks:
    """Return the looks of a tenant, overridden by the looks of one of its organizations. The result may be up to one second old."""
    settings = sign_in_settings(tenant_id)
    looks = Looks(
        name=settings.friendly_name,
        logo_url=settings.logo_url,
        favicon_url=settings.favicon_url,
        primary_color=settings.primary_color,
        page_background=settings.page_background,
        font_url=settings.font_url,
        font_stack=settings.font_stack,
        theme=remembered_themes.get(tenant_id),
    )
    return looks if not organization_id else of_organization(looks, remembered_organizations.get((tenant_id, organization_id)))


def of_organization(looks: Looks, branding: Mapping[str, Any]) -> Looks:
    """Return the looks with the logo and the colors of an organization."""
    logo, colors = branding.get("logo_url") or "", branding.get("colors") or {}
    primary, background = (_plain(colors.get(name)) for name in ("primary", "page_background"))
    theme: Theme = dict(looks.theme)
    if theme and logo:
        theme = with_value(theme, ("widget", "logo_url"), logo)
    if theme and primary:
        theme = with_value(theme, ("colors", "primary_button"), primary)
        theme = with_value(theme, ("colors", "primary_button_label"), readable_on(primary))
    if theme and background:
        theme = with_value(theme, ("page_background", "background_color"), background)
        theme = with_value(theme, ("page_background", "background_image_url"), "")
    return replace(
        looks,
        logo_url=logo or looks.logo_url,
        primary_color=primary or looks.primary_color,
        page_background=background or looks.page_background,
        theme=theme,
    )


def _plain(color: Any) -> str:
    """Return a color of an organization as `#rrggbb`; empty for an invalid color, such as a stored color with five digits."""
    return opaque(color) if isinstance(color, str) and is_color(color) else ""


def _theme(tenant_id: str) -> Theme:
    row = BrandingTheme.objects.of(tenant_id).first()
    return dict(row.values) if row is not None else {}


def _organization(key: tuple[str, str]) -> dict[str, Any]:
    tenant_id, organization_id = key
    found = Organization.objects.of(tenant_id).filter(pk=organization_id).values_list("branding", flat=True).first()
    return found or {}


remembered_themes: Remembered[str, Theme] = Remembered(_theme, seconds=_REMEMBERED_SECONDS)
remembered_organizations: Remembered[tuple[str, str], dict[str, Any]] = Remembered(_organization, seconds=_REMEMBERED_SECONDS)
