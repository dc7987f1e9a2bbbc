"""The two paths of an endpoint, tested separately: the plain path in a thread, and the fast path on the event loop.

In tests of the fast path, a stub replaces the plain path: it answers 203 to each request that the fast path does not answer itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

from authapi.views.chain import Answer, Application, Call, hot_endpoint, json_answer
from authapi.views.token import _token
from authapi.views.token_at_once import token_at_once
from authapi.views.userinfo import _userinfo, _userinfo_at_once
from foundation.database.loop_queries import close_loop_queries, open_loop_queries
from identity.models import Tenant
from tests.authapi.asgi_client import FORM, Received, exchanged

Result = TypeVar("Result")

LEFT = {"left": "to the endpoint"}


def _left(_call: Call) -> Answer:
    return json_answer(LEFT, status=203)


PLAIN_TOKEN = hot_endpoint(_token, name="token", methods=("POST",))
FAST_TOKEN = hot_endpoint(_left, name="token", methods=("POST",), at_once=token_at_once)
PLAIN_PROFILE = hot_endpoint(_userinfo, name="userinfo", methods=("GET", "POST"))
FAST_PROFILE = hot_endpoint(_left, name="userinfo", methods=("GET", "POST"), at_once=_userinfo_at_once)


def on_loop(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run `work` on an event loop that can query the database, as in a web process."""

    async def with_pool() -> Result:
        await open_loop_queries()
        try:
            return await work()
        finally:
            await close_loop_queries()

    return asyncio.run(with_pool())


async def asked(
    application: Application, tenant: Tenant, form: Mapping[str, Any], *, as_json: bool = False, headers: Mapping[str, str] | None = None
) -> Received:
    """POST `form`, form-encoded or as JSON, and return the answer."""
    body = json.dumps(form) if as_json else urlencode(form)
    kind = {"Content-Type": "application/json" if as_json else FORM}
    return await exchanged(
        application, "POST", host=f"{tenant.pk}.example.test", headers={**kind, **(headers or {})}, chunks=(body.encode(),)
    )


async def shown(application: Application, tenant: Tenant, bearer: str) -> Received:
    """Request the profile of the user of an access token."""
    return await exchanged(application, "GET", host=f"{tenant.pk}.example.test", headers={"Authorization": f"Bearer {bearer}"})


def headers_of(answer: Received) -> dict[str, str]:
    """Return the headers without the headers that differ in every answer."""
    different = ("x-ratelimit-remaining", "x-ratelimit-reset", "content-length", "dpop-nonce")
    return {name: value for name, value in answer.headers.items() if name not in different}
