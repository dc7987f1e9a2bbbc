"""The view of the path `/`."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import Resolver404
from django.views.decorators.csrf import csrf_exempt

from identity.hosts import is_platform_host


# No CSRF check: the view changes nothing, and a program that posts a form must get the response for an unknown URL.
@csrf_exempt
def home(request: HttpRequest) -> HttpResponse:
    """On the host of the platform, redirect to the admin. On other hosts, answer as for a URL without a view."""
    if request.method not in {"GET", "HEAD"} or not is_platform_host(request.META.get("HTTP_HOST", "")):
        raise Resolver404({"path": request.path_info, "tried": []})
    return redirect("admin:index")
