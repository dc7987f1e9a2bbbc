"""Makes the test clients of Django faster: they share their middleware, and copy fewer template contexts.

Each client of Django has its own handler, whose first request creates all middleware. The middleware of static files then reads the
state of every static file. Each request copies the context of every template, and a page of the admin has hundreds of templates: one per
widget and included part. A process of the service does not repeat this work.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.template import Context, RequestContext, Template
from django.test import client
from django.test.utils import ContextList

# Settings that the middleware reads when it is created. A test that changes one of these settings gets its own middleware.
_READ_AT_START = ("MIDDLEWARE", "DEBUG", "FORCE_SCRIPT_NAME", "SESSION_ENGINE", "SECURE_", "STATIC", "WHITENOISE_")
_PARTS = ("_view_middleware", "_template_response_middleware", "_exception_middleware", "_middleware_chain")
_made: dict[str, dict[str, Any]] = {}


def spare_repetition() -> None:
    """Make the test clients of this process share their middleware, and keep only the contexts of whole pages."""
    client.ClientHandler.load_middleware = _load  # type: ignore[method-assign, assignment]
    client.store_rendered_templates = _store  # type: ignore[attr-defined]


def _load(handler: BaseHandler, is_async: bool = False) -> None:  # noqa: FBT002  (the framework's signature)
    read = repr([(name, getattr(settings, name)) for name in dir(settings) if name.startswith(_READ_AT_START)])
    if read not in _made:
        BaseHandler.load_middleware(handler, is_async)
        _made[read] = {name: getattr(handler, name) for name in _PARTS}
    vars(handler).update(_made[read])


def _store(store: dict[str, Any], signal: Any, sender: Any, template: Template, context: Context, **_: Any) -> None:
    # Store each page once. Its widgets have a plain context, and its parent templates and included parts have the context of the page.
    if isinstance(context, RequestContext) and store.get("page") is not context:
        store["page"] = context
        store.setdefault("context", ContextList()).append(copy(context))
        store.setdefault("templates", []).append(template)
