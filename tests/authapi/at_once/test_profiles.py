"""Profiles from the event loop equal profiles from a thread, are current, and belong to the user of the token."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from authapi.services.api_resources import create_api_resource
from foundation.memory import executor
from identity.models import Tenant, User
from identity.services.users import update_user
from tests.authapi.asgi_client import Received, ask_token
from tests.authapi.at_once.paths import FAST_PROFILE, LEFT, PLAIN_PROFILE, headers_of, on_loop, shown
from tests.factories.logins import code_form, code_of, login_of, some_user, web_client

API = "urn:orders"
SCOPES = "openid profile email phone read"


def token_of(tenant: Tenant, user: User, scope: str = SCOPES) -> str:
    client = web_client(tenant)
    issue = login_of(tenant, client, user, scope=scope, audience=API)
    return str(ask_token(tenant, code_form(client, code_of(issue))).json()["access_token"])


@pytest.fixture(autouse=True)
def _api(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, scopes=[{"value": "read", "description": ""}])


@pytest.mark.parametrize("scope", [SCOPES, "openid", "openid name created_at"])
def test_the_event_loop_and_a_thread_return_the_same_profile(tenant: Tenant, scope: str) -> None:
    user = some_user(
        tenant, name="Ada", given_name="Ada", family_name="Lovelace", nickname="ada", username="ada", phone_number="+4930123456"
    )
    token = token_of(tenant, user, scope)

    async def both() -> list[Received]:
        return [await shown(path, tenant, token) for path in (FAST_PROFILE, PLAIN_PROFILE)]

    fast, plain = on_loop(both)
    assert (fast.status, fast.body, headers_of(fast)) == (200, plain.body, headers_of(plain))


def test_the_request_after_a_change_returns_the_new_name(tenant: Tenant) -> None:
    user = some_user(tenant, name="Ada")
    token = token_of(tenant, user)

    async def twice() -> list[Any]:
        first = await shown(FAST_PROFILE, tenant, token)
        await executor.run(partial(update_user, tenant_id=tenant.pk, user_id=user.user_id, changes={"name": "Ada Lovelace"}))
        return [first.json()["name"], (await shown(FAST_PROFILE, tenant, token)).json()["name"]]

    assert on_loop(twice) == ["Ada", "Ada Lovelace"]


def test_requests_that_share_a_statement_get_the_profiles_of_their_own_users(tenant: Tenant) -> None:
    users = [some_user(tenant, name=f"Ada {number}") for number in range(5)]
    tokens = [token_of(tenant, user) for user in users]

    async def at_once() -> list[Received]:
        return await asyncio.gather(*(shown(FAST_PROFILE, tenant, token) for token in [*tokens, *tokens]))

    assert [answer.json()["sub"] for answer in on_loop(at_once)] == [user.user_id for user in users] * 2


def test_the_event_loop_leaves_blocked_users_and_invalid_tokens_to_the_endpoint(tenant: Tenant) -> None:
    user = some_user(tenant)
    token = token_of(tenant, user)
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"blocked": True})

    async def both() -> list[Received]:
        return [await shown(FAST_PROFILE, tenant, each) for each in (token, token[:-4] + "AAAA", "opaque")]

    assert [(answer.status, answer.json()) for answer in on_loop(both)] == [(203, LEFT)] * 3
