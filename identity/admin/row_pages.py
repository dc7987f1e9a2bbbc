"""Additional pages of one row, each with a URL and a button. Apps also add such pages to the admin classes of apps that they
import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from identity.admin.object_actions import ObjectActionsAdmin, button

Row = TypeVar("Row", bound=models.Model)


def _always(_row: Any) -> bool:
    return True


@dataclass(frozen=True)
class RowPage:
    """A page below the URL of a row. The account needs two permissions: to view the row, and the one in `permission`."""

    name: str
    label: str
    view: Callable[[HttpRequest, Any], HttpResponse]
    permission: str
    # Tells for a row whether the page and its button apply to it. Otherwise both are hidden.
    is_offered: Callable[[Any], bool] = _always
    # False for a page that is linked only from a table on the page of the row.
    in_menu: bool = True


class RowPagesAdmin(ObjectActionsAdmin[Row]):
    """Adds the URL of each of `row_pages`, and its button if the account may open the page."""

    def __init__(self, model: type[Row], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.row_pages: list[RowPage] = []

    def get_urls(self) -> list[URLPattern]:
        own = [
            path(f"<path:object_id>/{page.name}/", self.admin_site.admin_view(partial(self._shown, page)), name=self._url_name(page))
            for page in self.row_pages
        ]
        return [*own, *super().get_urls()]

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        response = super().render_change_form(request, context, *args, **kwargs)
        row = context.get("original")
        if row is not None:
            buttons = [
                button(page.name, page.label, self.address_of(page.name, row))
                for page in self.row_pages
                if page.in_menu and request.user.has_perm(page.permission) and page.is_offered(row)
            ]
            response.context_data["object_actions"] = [*buttons, *response.context_data.get("object_actions", [])]
        return response

    def address_of(self, name: str, row: models.Model) -> str:
        """Return the URL of one of these pages, or of a page that every row has, such as `change`."""
        return reverse(f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_{name}", args=(quote(row.pk),))

    def _url_name(self, page: RowPage) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page.name}"

    def _shown(self, page: RowPage, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        if not (self.has_view_permission(request, row) and request.user.has_perm(page.permission)):
            raise PermissionDenied
        if not page.is_offered(row):
            raise Http404
        return page.view(request, row)
