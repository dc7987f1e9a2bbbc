"""The base of the pages in this package: their URLs, their layout, and the page to show after them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.http import url_has_allowed_host_and_scheme

from authapi.edge.addresses import client_address


class SitePages:
    """Pages of the site that show no rows of a tenant."""

    def __init__(self, site: admin.AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        """Return the URLs of the pages."""
        raise NotImplementedError

    def address(self, name: str, *args: Any) -> str:
        return reverse(f"{self.site.name}:{name}", args=args)

    def page(self, request: HttpRequest, template: str, title: str, *, status: int = 200, **context: Any) -> TemplateResponse:
        """Return a page with the header and the navigation of the site."""
        request.current_app = self.site.name
        own = {**self.site.each_context(request), "title": title, "subtitle": None, **context}
        return TemplateResponse(request, template, own, status=status)

    def following(self, request: HttpRequest) -> str:
        """Return the requested next page if it is on this site, otherwise the start page."""
        wanted = request.POST.get("next") or request.GET.get("next") or ""
        return wanted if url_has_allowed_host_and_scheme(wanted, allowed_hosts=None) else self.address("index")


def address_of(request: HttpRequest, trusted_proxies: list[str]) -> str:
    """Return the client's IP address. A forwarded IP address is used only if a trusted proxy sent it."""
    sent = request.META
    return client_address(sent.get("REMOTE_ADDR") or "", sent.get("HTTP_X_FORWARDED_FOR", ""), trusted_proxies)
