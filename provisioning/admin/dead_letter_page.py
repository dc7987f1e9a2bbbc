"""Base class of additional pages about dead letters: URLs, permissions, and buttons in the list and on the page of a dead letter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode

from foundation.admin.beside_rows import page_beside
from identity.admin.scope import only_tenant, tenant_in_scope
from identity.admin.tenant_scope import TenantScopedAdmin
from provisioning.admin.rights import Right, require
from provisioning.models import DeadLetter


class DeadLetterPage:
    """A page about dead letters. Subclasses define URLs and views; each view names its required permissions."""

    def __init__(self, owner: TenantScopedAdmin[DeadLetter]) -> None:
        self.owner = owner
        self.site = owner.admin_site

    def urls(self) -> list[URLPattern]:
        raise NotImplementedError

    def tools(self, request: HttpRequest) -> list[dict[str, str]]:
        """Return the buttons of this page above the list."""
        return []

    def buttons(self, request: HttpRequest, row: DeadLetter) -> list[dict[str, Any]]:
        """Return the buttons of this page on the page of one dead letter."""
        return []

    def route(self, route: str, view: Callable[..., HttpResponseBase], name: str, *rights: Right) -> URLPattern:
        """Return a URL pattern of this page, which answers 403 to an account without `rights`."""

        def guarded(request: HttpRequest, **parts: Any) -> HttpResponseBase:
            require(request, *rights)
            return view(request, **parts)

        return path(route, self.site.admin_view(guarded), name=f"provisioning_deadletter_{name}")

    def address(self, name: str, *args: Any, query: str = "") -> str:
        place = reverse(f"{self.site.name}:provisioning_deadletter_{name}", args=args)
        return f"{place}?{query}" if query else place

    def tenant_or_choice(self, request: HttpRequest) -> str | HttpResponse:
        """Return the id of the tenant in scope, or of the only tenant.

        Otherwise, redirect to the page on which an operator chooses a tenant.
        """
        tenant = tenant_in_scope(request) or only_tenant()
        if tenant is not None:
            return tenant
        chooser = reverse(f"{self.site.name}:choose_tenant")
        return HttpResponseRedirect(f"{chooser}?{urlencode({'next': request.get_full_path()})}")

    def page(self, request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
        return page_beside(self.owner, request, template, title, **context)
