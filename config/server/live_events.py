"""The stream of the admin's live page: on the platform's host only, with events of one tenant, for signed-in staff who may see them.

Like `/events` it runs outside Django, so an open page occupies no thread and no request slot.
"""

from __future__ import annotations

import logging
from functools import partial
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.db import Error as DatabaseError
from django.http import HttpRequest
from django.http.cookie import parse_cookie

from config.console.admin_login import may_enter
from config.server.hosts import Receive, Scope, Send, answer, header
from events.admin.live import PERMISSION
from events.stream.endpoint import serve
from events.stream.refusals import Refused, unavailable
from events.stream.runtime import runtime
from events.stream.staff_admission import Watcher, admit_watcher
from foundation.memory import executor
from identity.admin.assurance import must_enrol
from identity.admin.scope import only_tenant, staff_of, tenant_in_scope
from identity.hosts import is_platform_host

logger = logging.getLogger(__name__)

_RETRY_AFTER_SECONDS = 2
# Accepted values of `Sec-Fetch-Site`. Browsers send `same-origin` for requests of the service's own pages; other programs send no header.
_OWN_PAGE = frozenset({"", "same-origin"})


async def live_events(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the stream of the tenant in the URL, if the account of the session may see the tenant."""
    try:
        _require_own_page(scope)
        tenant_id, cookie = scope["url_route"]["kwargs"]["tenant"], header(scope, b"cookie")
        watcher = await _read(tenant_id, cookie)
        shared = await runtime()
        still_stands = partial(_still_stands, watcher, cookie)
        admitted = await admit_watcher(scope, watcher, shared, still_stands=still_stands)
    except Refused as refusal:
        await answer(send, refusal, head_only=scope["method"] == "HEAD")
        return
    await serve(admitted, shared, scope, receive, send)


def watcher_of(tenant_id: str, cookie: str) -> Watcher:
    """Return the staff account of the session in these cookies, if the account may watch this tenant.

    Raises `Refused`: 401 without a session that may enter the admin, 403 without the permission, 404 if the admin shows another tenant.
    """
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(parse_cookie(cookie).get(settings.SESSION_COOKIE_NAME))
    request.user = get_user(request)
    staff = staff_of(request)
    if staff is None or not may_enter(staff) or must_enrol(request):
        raise Refused(401, "Log in to the admin again.")
    if not staff.has_perm(PERMISSION):
        raise Refused(403, "This account may not see events.")
    if (tenant_in_scope(request) or only_tenant()) != tenant_id:
        raise Refused(404, "The admin shows another tenant now. Load the page again.")
    return Watcher(tenant_id, staff.email, request.session.get_expiry_date().timestamp())


def _require_own_page(scope: Scope) -> None:
    if not is_platform_host(header(scope, b"host")):
        raise Refused(404, "The address does not exist.")
    if scope["method"] != "GET":
        raise Refused(405, "This operation answers to GET only.", headers=[(b"allow", b"GET")])
    if header(scope, b"sec-fetch-site") not in _OWN_PAGE:
        raise Refused(403, "Only the live page of the admin may read this stream.")


async def _read(tenant_id: str, cookie: str) -> Watcher:
    try:
        return await executor.run(partial(watcher_of, tenant_id, cookie))
    except (DatabaseError, OSError) as error:
        logger.warning("a session was not read: %s", type(error).__name__)
        raise unavailable("The service cannot answer right now. Try again.", retry_after_seconds=_RETRY_AFTER_SECONDS) from error


def _still_stands(watcher: Watcher, cookie: str) -> bool:
    try:
        return watcher_of(watcher.tenant_id, cookie).name == watcher.name
    except Refused:
        return False
