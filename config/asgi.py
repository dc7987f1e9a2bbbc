"""The ASGI application: the event stream and the hot endpoints beside Django, with one router and without WebSockets.

Order of a request: the check of TLS, then the route, then the host and its tenant. Django receives complete bodies of limited size, and a
limited number of requests at once. The stream and the token endpoint do not wait for requests to Django.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import path, re_path

from config import collector

collector.rest()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.production")
# By default, a busy thread keeps the interpreter lock for 5 ms. The event loop, and so every event for a subscriber, would wait that long.
sys.setswitchinterval(0.0005)
django_application: Any = get_asgi_application()
# `config.apps` has switched garbage collection on again during `get_asgi_application`. Switch it off again, because the imports below also
# create many objects.
collector.rest()

from django.conf import settings  # noqa: E402  (models may be imported only after `get_asgi_application`)

from authapi.views import HOT_ENDPOINTS  # noqa: E402
from authapi.views.legacy_endpoints import LEGACY_ENDPOINTS  # noqa: E402
from config.metrics import metrics  # noqa: E402
from config.server.bounds import bounded_body, bounded_count  # noqa: E402
from config.server.downloads import download  # noqa: E402
from config.server.hosts import Application, Receive, Scope, Send, answer, for_tenant, guarded  # noqa: E402
from config.server.lifespan import begin, is_begun, lifespan  # noqa: E402
from config.server.live_events import live_events  # noqa: E402
from config.server.peer_share import shared_out  # noqa: E402
from config.server.probes import LIVE, READY, direct_requests, live, ready  # noqa: E402
from config.server.rates import rated  # noqa: E402
from config.server.request_counts import counted  # noqa: E402
from config.server.traced_requests import traced  # noqa: E402
from config.server.uploads import uploads  # noqa: E402
from events.stream.endpoint import EventsConsumer  # noqa: E402
from events.stream.refusals import Refused  # noqa: E402


async def unserved(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 404 at paths that only processes of another role serve."""
    await answer(send, Refused(404, "This process does not serve this address."), head_only=scope["method"] == "HEAD")


async def refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Close a WebSocket before it opens: the service does not support WebSockets."""
    await receive()
    await send({"type": "websocket.close", "code": 1000})


def routes(role: str) -> URLRouter:
    """Return the router with the paths that a process of this role serves."""
    # The annotation `Any` hides ASGI applications from the type check: Django's types for `path` allow only views, and Channels also allows
    # ASGI applications.
    events: Any = for_tenant(EventsConsumer.as_asgi()) if role != "app" else unserved
    live: Any = live_events if role != "app" else unserved
    rest: Any = unserved
    hot: dict[str, Any] = {}
    if role != "stream":
        hot = {address.removeprefix("/"): endpoint for address, endpoint in (HOT_ENDPOINTS | LEGACY_ENDPOINTS).items()}
        limited = bounded_count(django_application, limit=settings.WEB_SYNC_LIMIT)
        ordinary = bounded_body(limited, limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        rest = for_tenant(rated(uploads(limited, otherwise=ordinary)), platform=True)
        hot["exports/<str:name>"] = for_tenant(rated(download))
    scrape: Any = metrics
    fixed = [path("api/v2/events", events), path("admin/events/live/<str:tenant>/stream", live), path("metrics", scrape)]
    return URLRouter([*fixed, *(path(address, endpoint) for address, endpoint in hot.items()), re_path(r"", rest)])


def straight(router: URLRouter, role: str) -> Application:
    """Find a hot endpoint by its exact path.

    Call the router only for other paths. The router is slower, because it tries one pattern after another.
    """
    endpoints: dict[str, Any] = dict(HOT_ENDPOINTS) if role != "stream" else {}

    def found(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        answered: Awaitable[None] = endpoints.get(scope["path"], router)(scope, receive, send)
        return answered

    return found


def begun(http: Application) -> Application:
    """If the server does not support lifespan, start the services of the process before its first request."""

    async def after_begin(scope: Scope, receive: Receive, send: Send) -> None:
        await begin()
        await http(scope, receive, send)

    def first(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return http(scope, receive, send) if is_begun() else after_begin(scope, receive, send)

    return first


served: Application = counted(shared_out(traced(guarded(straight(routes(settings.WEB_ROLE), settings.WEB_ROLE)))))
application = ProtocolTypeRouter(
    {
        "http": begun(direct_requests({LIVE: live, READY: ready, "/metrics": metrics}, otherwise=served)),
        "websocket": refuse_websocket,
        "lifespan": lifespan,
    }
)
collector.begin()
