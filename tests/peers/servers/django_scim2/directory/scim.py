"""The base URL of django-scim2, and the middleware that checks its bearer token."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

urlpatterns = [path("scim/v2/", include("django_scim.urls", namespace="scim"))]


class BearerMiddleware:
    """Middleware that treats a request as authenticated if the request has the bearer token."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_known = request.headers.get("Authorization") == f"Bearer {os.environ['SCIM_TOKEN']}"
        request.user = SimpleNamespace(is_authenticated=is_known, is_anonymous=not is_known)
        return self._get_response(request)
