"""Exchanges of refresh tokens on the event loop.

Their answers and stored rows equal those of exchanges in a thread, also if two requests arrive at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from authapi.models import RefreshToken
from authapi.services.api_resources import create_api_resource
from authapi.tokens.minting import Issue
from authapi.tokens.refresh_at_once import read_refresh_token, renew_at_once
from authapi.tokens.refresh_tokens import Sender, policy_of
from authapi.tokens.revocation import revoke_lineage, revoke_refresh_tokens
from authapi.views.token import token as whole
from foundation.memory import executor
from foundation.memory.ttl_cache import Cold
from foundation.secrets.random_secrets import digest_of
from identity.models import Tenant
from identity.services.users import update_user
from tests.authapi.asgi_client import Received, ask_token
from tests.authapi.at_once.paths import FAST_TOKEN, LEFT, PLAIN_TOKEN, asked, headers_of, on_loop
from tests.authapi.forging import decoded
from tests.factories.authapi import Registered
from tests.factories.logins import code_form, code_of, login_of, public_client, refresh_form, some_user, web_client

API = "urn:orders"
DIFFERENT = ("jti", "iat", "exp", "sub", "sid", "auth_time", "updated_at", "email")
# Columns that differ in every row.
OWN = ("id", "wire_id", "token_checksum", "token_family", "lineage", "user_id", "session_id", "sid", "issued_jti", "sealed_successor")


def client_with(tenant: Tenant, **settings: Any) -> Registered:
    rotating = {"rotation_type": "rotating", "expiration_type": "expiring"}
    return web_client(tenant, settings={"refresh_token": {**rotating, **settings}})


def first_token(tenant: Tenant, registered: Registered, *, scope: str = "openid email offline_access read", **login: Any) -> str:
    issue = login_of(tenant, registered, some_user(tenant), scope=scope, audience=API, **login)
    return str(ask_token(tenant, code_form(registered, code_of(issue))).json()["refresh_token"])


def api(tenant: Tenant, **settings: Any) -> None:
    scopes = [{"value": "read", "description": ""}]
    create_api_resource(tenant_id=tenant.pk, identifier=API, scopes=scopes, settings={"allow_offline_access": True, **settings})


def row_of(tenant: Tenant, token: str) -> RefreshToken:
    return RefreshToken.objects.of(tenant.pk).get(token_checksum=digest_of(token))


def stored(row: RefreshToken) -> dict[str, Any]:
    """Return the values of a row. For a time, return whether the column is set."""
    values = {field.attname: getattr(row, field.attname) for field in RefreshToken._meta.concrete_fields if field.attname not in OWN}
    return {name: bool(value) if hasattr(value, "tzinfo") else value for name, value in values.items()} | {
        "methods": [method["name"] for method in row.methods],
        "is_sealed": bool(row.sealed_successor), "is_family": row.token_family == row.lineage, "is_of_session": row.session_id == row.sid
    }  # fmt: skip


def told(answer: Received) -> tuple[Any, ...]:
    members = answer.json()
    tokens = [decoded(members.pop(name)) for name in ("access_token", "id_token")]
    contents = [(header, {name: value for name, value in claims.items() if name not in DIFFERENT}) for header, claims in tokens]
    names = [sorted(claims) for _, claims in tokens]
    members.pop("refresh_token", None)
    return answer.status, members, contents, names, headers_of(answer)


SETTINGS: dict[str, dict[str, Any]] = {
    "rotating": {},
    "rotating with a leeway": {"leeway": 60},
    "rotating without an expiry": {
        "expiration_type": "non-expiring",
        "infinite_token_lifetime": True,
        "infinite_idle_token_lifetime": True,
    },
    "staying": {"rotation_type": "non-rotating"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_event_loop_gives_the_same_answer_and_rows_as_a_thread(tenant: Tenant, name: str) -> None:
    api(tenant)
    client = client_with(tenant, **SETTINGS[name])
    first = {path: first_token(tenant, client) for path in (FAST_TOKEN, PLAIN_TOKEN)}
    agent = {"User-Agent": "A phone"}

    async def both() -> list[Received]:
        return [await asked(path, tenant, refresh_form(client, token), headers=agent) for path, token in first.items()]

    fast, plain = on_loop(both)
    assert told(fast) == told(plain)
    assert list(fast.json()) == list(plain.json())
    rows = [row_of(tenant, token) for token in first.values()]
    assert stored(rows[0]) == stored(rows[1])
    if "refresh_token" in fast.json():
        successors = [row_of(tenant, answer.json()["refresh_token"]) for answer in (fast, plain)]
        assert stored(successors[0]) == stored(successors[1])
        assert [each.lineage for each in successors] == [each.lineage for each in rows]
        assert decoded(fast.json()["access_token"])[1]["jti"] == successors[0].issued_jti


def test_the_event_loop_also_answers_a_public_client(tenant: Tenant) -> None:
    api(tenant)
    client = public_client(tenant, settings={"refresh_token": {"rotation_type": "rotating", "expiration_type": "expiring"}})
    form = refresh_form(client, first_token(tenant, client))
    assert on_loop(lambda: asked(FAST_TOKEN, tenant, form)).status == 200


def test_reusing_a_token_that_the_event_loop_rotated_ends_its_lineage(tenant: Tenant) -> None:
    api(tenant)
    client = client_with(tenant)
    token = first_token(tenant, client)

    async def stolen() -> list[Received]:
        return [await asked(whole, tenant, refresh_form(client, token)) for _ in range(2)]

    first, second = on_loop(stolen)
    assert (first.status, second.status) == (200, 403)
    assert not RefreshToken.objects.of(tenant.pk).filter(revoked__isnull=True).exists()


def test_a_repeated_exchange_within_the_leeway_gets_the_same_successor(tenant: Tenant) -> None:
    api(tenant)
    client = client_with(tenant, leeway=60)
    token = first_token(tenant, client)

    async def lost() -> list[Received]:
        return [await asked(whole, tenant, refresh_form(client, token)) for _ in range(2)]

    first, second = on_loop(lost)
    assert first.json()["refresh_token"] == second.json()["refresh_token"]


def test_only_one_of_several_concurrent_exchanges_of_a_token_succeeds(tenant: Tenant) -> None:
    api(tenant)
    client = client_with(tenant)
    form = refresh_form(client, first_token(tenant, client))

    async def at_once() -> list[Received]:
        return await asyncio.gather(*(asked(whole, tenant, form) for _ in range(6)))

    answers = on_loop(at_once)
    assert sorted(answer.status for answer in answers) == [200, 403, 403, 403, 403, 403]
    # The other requests used the token a second time, so the successor ends with its lineage.
    assert not RefreshToken.objects.of(tenant.pk).filter(revoked__isnull=True).exists()


def blocked(tenant: Tenant, row: RefreshToken) -> None:
    update_user(tenant_id=tenant.pk, user_id=row.user.user_id, changes={"blocked": True})


BETWEEN: dict[str, Callable[[Tenant, RefreshToken], Any]] = {
    "a revocation of the lineage": lambda tenant, row: revoke_lineage(tenant_id=tenant.pk, lineage=row.lineage),
    "a revocation by the user": lambda tenant, row: revoke_refresh_tokens(tenant_id=tenant.pk, user_id=row.user_id),
    "a block of the user": blocked,
    "a deletion": lambda tenant, row: RefreshToken.objects.of(tenant.pk).filter(pk=row.pk).delete(),
}


@pytest.mark.parametrize("name", BETWEEN)
@pytest.mark.parametrize("rotation", ["rotating", "non-rotating"])
def test_a_revocation_between_reading_and_exchanging_a_token_takes_effect(tenant: Tenant, name: str, rotation: str) -> None:
    api(tenant)
    client = client_with(tenant, rotation_type=rotation)
    token = first_token(tenant, client)
    access = Issue(subject="", audience=API, scopes=(), grant="", seconds=60, dialect="access_token")

    async def interleaved() -> None:
        row = await read_refresh_token(tenant_id=tenant.pk, token=token)
        await executor.run(partial(BETWEEN[name], tenant, row))
        with pytest.raises(Cold):
            await renew_at_once(row, access=access, until=timezone.now(), policy=policy_of(client.client), sender=Sender("192.0.2.1", ""))

    on_loop(interleaved)
    assert not RefreshToken.objects.of(tenant.pk).filter(revoked__isnull=True).exists()
    assert RefreshToken.objects.of(tenant.pk).count() <= 1


LEFT_TO_THE_ENDPOINT: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "an unknown token": lambda form: form | {"refresh_token": "unknown"},
    "another API": lambda form: form | {"audience": "urn:other"},
    "no token": lambda form: {name: value for name, value in form.items() if name != "refresh_token"},
}


@pytest.mark.parametrize("name", LEFT_TO_THE_ENDPOINT)
def test_the_event_loop_leaves_refusals_to_the_endpoint_and_changes_nothing(tenant: Tenant, name: str) -> None:
    api(tenant)
    client = client_with(tenant)
    token = first_token(tenant, client)
    answer = on_loop(lambda: asked(FAST_TOKEN, tenant, LEFT_TO_THE_ENDPOINT[name](refresh_form(client, token))))
    assert (answer.status, answer.json()) == (203, LEFT)
    assert row_of(tenant, token).revoked is None


def test_the_event_loop_leaves_a_token_of_another_client_to_the_endpoint(tenant: Tenant) -> None:
    api(tenant)
    owner, thief = client_with(tenant), client_with(tenant)
    token = first_token(tenant, owner)
    answer = on_loop(lambda: asked(FAST_TOKEN, tenant, refresh_form(thief, token)))
    assert (answer.status, answer.json()) == (203, LEFT)


def test_the_endpoint_answers_when_the_database_pool_of_the_event_loop_is_not_open(tenant: Tenant) -> None:
    api(tenant)
    client = client_with(tenant)
    assert ask_token(tenant, refresh_form(client, first_token(tenant, client))).status == 200
