"""How a tenant looks on the hosted pages: `/branding`. What it shows is kept with the settings of the tenant."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.validators import RegexValidator
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.tenant_setting_schemas import BRANDING
from authapi.models import TenantSettings
from authapi.services.tenant_settings import update_branding
from authapi.tenant_settings import BRANDING_DEFAULTS, settings_values
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, Text
from foundation.api.operations import Operation

_COLOUR = RegexValidator(r"\A(#[0-9a-fA-F]{6})?\Z", "String does not match pattern ^#[0-9a-fA-F]{6}$")
# Browsers load no picture from an insecure place into a secure page.
_SECURE_ADDRESS = RegexValidator(r"\A(https://[^\s/?#]+[^\s#]*)?\Z", "Object didn't pass validation for format strict-https-uri")
# By the names of the wire, below `colors`.
_COLORS = {"primary": "primary_color", "page_background": "page_background"}


class BrandColors(Closed):
    primary = Text(required=False, allow_null=True, allow_blank=True, validators=[_COLOUR])
    page_background = Text(required=False, allow_null=True, allow_blank=True, validators=[_COLOUR])


class BrandingToChange(Closed):
    """A null or an empty text brings the look of the service back."""

    colors = BrandColors(required=False, allow_null=True)
    logo_url = Text(required=False, allow_null=True, allow_blank=True, max_length=2048, validators=[_SECURE_ADDRESS])


class BrandingEndpoint(Endpoint):
    """The logo and the colours of the hosted pages."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("get_branding", "Read the logo and the colours of the hosted pages", ("read:branding",), 200, BRANDING),
        "partial_update": Operation(
            "update_branding",
            "Change the logo or the colours; colours are merged, null brings the look of the service back",
            ("update:branding",),
            200,
            BRANDING,
            BrandingToChange,
        ),
    }

    def list(self, request: Request) -> Response:
        return Response(_shown(_looks(TenantSettings.objects.first())))

    def partial_update(self, request: Request) -> Response:
        changes = _changes(self.body_of(request, BrandingToChange))
        if not changes:
            return self.list(request)
        return Response(_shown(_looks(update_branding(tenant_id=self.tenant_id, changes=changes))))


def _changes(body: dict[str, Any]) -> dict[str, Any]:
    """Return the changed looks by the names of the settings; `colors` that are null clear both."""
    changes = {"logo_url": body["logo_url"]} if "logo_url" in body else {}
    if "colors" in body:
        colors = dict.fromkeys(_COLORS) if body["colors"] is None else body["colors"]
        changes |= {_COLORS[name]: value for name, value in colors.items()}
    return changes


def _looks(row: TenantSettings | None) -> dict[str, Any]:
    return {**BRANDING_DEFAULTS, **settings_values(row).get("branding", {})}


def _shown(looks: dict[str, Any]) -> dict[str, Any]:
    """Return the looks by the names of the wire; what was never set is left out."""
    colors = {name: looks[stored] for name, stored in _COLORS.items() if looks[stored]}
    return ({"colors": colors} if colors else {}) | ({"logo_url": looks["logo_url"]} if looks["logo_url"] else {})
