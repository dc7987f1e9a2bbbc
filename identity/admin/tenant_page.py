"""Pages of the admin that show one tenant and list no table: who may see them, whose they are, where they stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.http import urlencode

from identity.admin.scope import only_tenant, staff_of, tenant_in_scope

# Takes the request and the tenant's id, and what stands in the address.
TenantView = Callable[..., HttpResponse]


class TenantPage:
    """A page with a place in the navigation. `label` is its name there, `url_name` that of its address on the site."""

    label: str = ""
    title: str = ""
    url_name: str = ""
    permission: str = ""

    def __init__(self, site: admin.AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        """Return every address of the page, each made with `for_tenant`."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        return reverse(f"{self.site.name}:{self.url_name}")

    def may_see(self, request: HttpRequest, *further: str) -> bool:
        """Tell whether this account may use the page, and has the further permissions."""
        staff = staff_of(request)
        return staff is not None and all(staff.has_perm(permission) for permission in (self.permission, *further))

    def for_tenant(self, view: TenantView, *further: str) -> Callable[..., HttpResponse]:
        """Return `view` for the tenant in scope: 403 without the page's permission and those that the view needs further.

        An operator who sees several tenants is asked for one.
        """

        def scoped(request: HttpRequest, **parts: Any) -> HttpResponse:
            if not self.may_see(request, *further):
                raise PermissionDenied
            tenant = tenant_in_scope(request) or only_tenant()
            if tenant is not None:
                return view(request, tenant, **parts)
            if request.method != "GET":
                raise Http404
            chooser = reverse(f"{self.site.name}:choose_tenant")
            return HttpResponseRedirect(f"{chooser}?{urlencode({'next': self.address})}")

        return self.site.admin_view(scoped)

    def page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> TemplateResponse:
        """Return the page within the site."""
        request.current_app = self.site.name
        return TemplateResponse(request, template, {**self.site.each_context(request), "title": self.title, "subtitle": None, **context})

    def entry(self) -> dict[str, Any]:
        """Return the page as the navigation lists it, beside models."""
        name = self.url_name.replace("_", "-")
        return {"label": self.label, "name": self.title, "object_name": name, "admin_url": self.address, "add_url": None}


class PagesSite(admin.AdminSite):
    """A site that has such pages."""

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self.pages: list[TenantPage] = []

    def register_page(self, page_class: type[TenantPage]) -> None:
        """Put the page on the site."""
        self.pages.append(page_class(self))

    def get_urls(self) -> list[Any]:
        return [*(pattern for page in self.pages for pattern in page.urls()), *super().get_urls()]

    def page_entries(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Return the pages that this account may see, for the navigation."""
        return [page.entry() for page in self.pages if page.may_see(request)]
