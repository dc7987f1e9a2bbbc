"""The theme of a tenant: `/branding/themes`. A tenant has at most one theme, so this theme is also the default theme."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from authapi.api.branding.picture_addresses import kept_address, shown_address
from authapi.api.branding.theme_bodies import PICTURES, ThemeToChange, ThemeToCreate
from authapi.api.branding.theme_schemas import THEME
from authapi.looks.theme import GROUPS, Theme, value_at, with_value
from authapi.models import BrandingTheme
from authapi.services.branding import NO_THEME, create_theme, delete_theme, theme_of, update_theme
from foundation.api.endpoint import Endpoint
from foundation.api.operations import Operation
from foundation.api.refusals import Refusal, not_supported
from identity.services.failures import Conflict, NotFound

_NO_IDENTIFIERS = "Not supported: the display of identifiers cannot be configured."


class ThemeEndpoint(Endpoint):
    """The complete look of the hosted pages."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "create_branding_theme",
            "Create the theme; a tenant has at most one theme",
            ("update:branding",),
            201,
            THEME,
            ThemeToCreate,
            refuses=(409,),
        ),
        "retrieve": Operation("get_branding_theme", "Read the theme by its id", ("read:branding",), 200, THEME, refuses=(404,)),
        "partial_update": Operation(
            "update_branding_theme",
            "Replace whole groups of theme settings, such as `colors`",
            ("update:branding",),
            200,
            THEME,
            ThemeToChange,
            refuses=(404,),
        ),
        "destroy": Operation("delete_branding_theme", "Delete the theme", ("delete:branding",), 204, refuses=(404,)),
    }
    not_found_code = "inexistent_theme"

    def create(self, request: Request) -> Response:
        body = self._body(request, ThemeToCreate)
        name = body.pop("displayName", None) or ""
        try:
            row = create_theme(tenant_id=self.tenant_id, values=self._kept(body), display_name=name)
        except Conflict as error:
            raise Refusal(409, str(error), "theme_already_exists") from error
        return Response(shown_theme(request, row), status=201)

    def retrieve(self, request: Request, id: str) -> Response:
        row = theme_of(self.tenant_id)
        if row is None or row.pk != id:
            raise NotFound(NO_THEME)
        return Response(shown_theme(request, row))

    def partial_update(self, request: Request, id: str) -> Response:
        body = self._body(request, ThemeToChange)
        name = body.pop("displayName", None)
        row = update_theme(tenant_id=self.tenant_id, theme_id=id, groups=self._kept(body), display_name=name)
        return Response(shown_theme(request, row))

    def destroy(self, request: Request, id: str) -> Response:
        delete_theme(tenant_id=self.tenant_id, theme_id=id)
        return Response(status=204)

    def _body(self, request: Request, body: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        if isinstance(request.data, dict) and request.data.get("identifiers") is not None:
            raise not_supported(_NO_IDENTIFIERS)
        return self.body_of(request, body)  # type: ignore[arg-type]  # both are closed bodies

    def _kept(self, groups: Theme) -> Theme:
        for path in PICTURES:
            if path[0] in groups:
                groups = with_value(groups, path, kept_address(self.tenant_id, value_at(groups, path)))
        return groups


class DefaultThemeEndpoint(Endpoint):
    """The theme in use."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "get_default_branding_theme", "Read the theme; 404 if there is none", ("read:branding",), 200, THEME, refuses=(404,)
        ),
    }
    not_found_code = "inexistent_theme"

    def list(self, request: Request) -> Response:
        row = theme_of(self.tenant_id)
        if row is None:
            raise NotFound("There is no theme. The pages have the default look.")
        return Response(shown_theme(request, row))


def shown_theme(request: Request, row: BrandingTheme) -> Mapping[str, Any]:
    """Return a theme under the names of the API, with full URLs."""
    values: Theme = {group: row.values[group] for group in GROUPS}
    for path in PICTURES:
        values = with_value(values, path, shown_address(request, row.tenant_id, str(value_at(values, path))))
    return {"themeId": row.pk, "displayName": row.display_name, **values}
