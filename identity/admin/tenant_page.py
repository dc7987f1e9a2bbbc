"""Pages of the admin for one tenant that are not lists of rows.

Checks their permissions, finds the tenant in scope, and adds them to the navigation.
"""

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

# Called with the request, the tenant's id, and the parameters of the URL.
TenantView = Callable[..., HttpResponse]


class TenantPage:
    """A page with an entry in the navigation.

    `label` is the key of the page in the navigation, and `url_name` is the name of its URL on the site.
    """

    label: str = ""
    title: str = ""
    url_name: str = ""
    permission: str = ""

    def __init__(self, site: admin.AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        """Return the URLs of the page. Each view must be wrapped with `for_tenant`."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        return reverse(f"{self.site.name}:{self.url_name}")

    def may_see(self, request: HttpRequest, *further: str) -> bool:
        """Tell whether this account has the permission of the page and every permission in `further`."""
        staff = staff_of(request)
        return staff is not None and all(staff.has_perm(permission) for permission in (self.permission, *further))

    def for_tenant(self, view: TenantView, *further: str) -> Callable[..., HttpResponse]:
        """Return `view` for the tenant in scope. Answers 403 if the account lacks the permission of the page or one in `further`.

        Redirects an operator who sees several tenants to the choice of a tenant.
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
            return HttpResponseRedirect(f"{chooser}?{urlencode({'next': request.get_full_path()})}")

        return self.site.admin_view(scoped)

    def page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> TemplateResponse:
        """Return the page with the header and the navigation of the site."""
        request.current_app = self.site.name
        return TemplateResponse(request, template, {**self.site.each_context(request), "title": self.title, "subtitle": None, **context})

    def entry(self) -> dict[str, Any]:
        """Return the navigation entry of the page."""
        name = self.url_name.replace("_", "-")
        return {"label": self.label, "name": self.title, "object_name": name, "admin_url": self.address, "add_url": None}


class PagesSite(admin.AdminSite):
    """An admin site with pages for one tenant."""

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self.pages: list[TenantPage] = []

    def register_page(self, page_class: type[TenantPage]) -> None:
        """Add the page to the site."""
        self.pages.append(page_class(self))

    def get_urls(self) -> list[Any]:
        return [*(pattern for page in self.pages for pattern in page.urls()), *super().get_urls()]

    def page_entries(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Return the navigation entries of the pages that this account may see."""
        return [page.entry() for page in self.pages if page.may_see(request)]
