"""Every address that Django itself answers; `config.asgi` answers the stream and the hot endpoints before it."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
