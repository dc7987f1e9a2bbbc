"""The smallest site with django-eventstream. Clients can subscribe to a channel and publish to a channel."""

from __future__ import annotations

from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django_eventstream import send_event  # type: ignore[import-not-found]  # installed where this runs
from django_eventstream.views import events  # type: ignore[import-not-found]


async def subscribe(request: HttpRequest) -> HttpResponseBase:
    """Stream the events of the requested channel."""
    response: HttpResponseBase = events(request, channels=[request.GET["channel"]])
    return response


async def publish(request: HttpRequest) -> HttpResponse:
    """Send the body to the channel unchanged."""
    send_event(request.GET["channel"], "message", request.body.decode(), json_encode=False)
    return HttpResponse(status=201)


urlpatterns = [path("events", subscribe), path("publish", publish)]
application = get_asgi_application()
