"""The URLs that Django serves. `config.asgi` serves the stream and the endpoints with the most requests without Django."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from authapi.views.routes import sign_in_urls
from config.api import browser_urls, management_urls
from config.console.admin_site import site
from config.console.home import home

handler404 = "config.server.unserved.not_found"
handler500 = "config.server.unserved.failed"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", home),
    path("admin/", site.urls),
    *management_urls(),
    *browser_urls(),
    *sign_in_urls(),
]
