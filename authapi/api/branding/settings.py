"""Branding of the hosted pages: `/branding`. The values are part of the tenant settings."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.validators import RegexValidator
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.branding.picture_addresses import kept_address, shown_address
from authapi.api.tenant_setting_schemas import BRANDING
from authapi.looks.addresses import LONGEST_ADDRESS
from authapi.services.branding import branding_of, change_branding
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, Text
from foundation.api.operations import Operation
from identity.services.failures import Invalid

_COLOR = RegexValidator(r"\A(#[0-9a-fA-F]{6})?\Z", "String does not match pattern ^#[0-9a-fA-F]{6}$")
# Each member of `colors` in the API, with the name of its setting.
_COLORS = {"primary": "primary_color", "page_background": "page_background"}
_PICTURES = ("logo_url", "favicon_url")


def _address() -> Text:
    return Text(required=False, allow_null=True, allow_blank=True, max_length=LONGEST_ADDRESS)


class BrandColors(Closed):
    primary = Text(required=False, allow_null=True, allow_blank=True, validators=[_COLOR])
    page_background = Text(required=False, allow_null=True, allow_blank=True, validators=[_COLOR])


class BrandFont(Closed):
    url = _address()


class BrandingToChange(Closed):
    """A null or an empty text restores the default look."""

    colors = BrandColors(required=False, allow_null=True)
    favicon_url = _address()
    logo_url = _address()
    font = BrandFont(required=False, allow_null=True)


class BrandingEndpoint(Endpoint):
    """The logo, the icon, the colors and the font of the hosted pages. A theme overrides the colors and the font."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("get_branding", "Read the logo, the icon, the colors and the font", ("read:branding",), 200, BRANDING),
        "partial_update": Operation(
            "update_branding",
            "Change the logo, the icon, the colors or the font; colors are merged, null restores the default look",
            ("update:branding",),
            200,
            BRANDING,
            BrandingToChange,
        ),
    }

    def list(self, request: Request) -> Response:
        return Response(self._shown(request, branding_of(self.tenant_id)))

    def partial_update(self, request: Request) -> Response:
        changes = self._changes(self.body_of(request, BrandingToChange))
        if not changes:
            return self.list(request)
        try:
            looks = change_branding(tenant_id=self.tenant_id, changes=changes)
        except Invalid as error:
            raise Invalid({_member(name): texts for name, texts in error.errors.items()}) from error
        return Response(self._shown(request, looks))

    def _changes(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the changes under the names of the settings. If `colors` or `font` is null, all its members are cleared."""
        changes = {name: kept_address(self.tenant_id, body[name]) for name in _PICTURES if name in body}
        if "colors" in body:
            colors = dict.fromkeys(_COLORS) if body["colors"] is None else body["colors"]
            changes |= {_COLORS[name]: value for name, value in colors.items()}
        if "font" in body:
            font = {"url": None} if body["font"] is None else body["font"]
            changes |= {"font_url": font["url"]} if "url" in font else {}
        return changes

    def _shown(self, request: Request, looks: dict[str, str]) -> dict[str, Any]:
        """Return the branding under the names of the API. Values that were never set are left out."""
        colors = {name: looks[stored] for name, stored in _COLORS.items() if looks[stored]}
        pictures = {name: shown_address(request, self.tenant_id, looks[name]) for name in _PICTURES if looks[name]}
        font = {"font": {"url": looks["font_url"]}} if looks["font_url"] else {}
        return ({"colors": colors} if colors else {}) | pictures | font


def _member(name: str) -> str:
    """Return the API name of a setting that `services.branding` refused."""
    stored = name.removeprefix("branding.")
    of_colors = {kept: f"colors.{wire}" for wire, kept in _COLORS.items()}
    return of_colors.get(stored, "font.url" if stored == "font_url" else stored)
