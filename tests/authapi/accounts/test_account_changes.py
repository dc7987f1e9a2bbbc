"""After a user was blocked or an email address was changed: which sessions, codes and tokens end, and which notices clients get."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.login.sessions import find_session, note_client
from authapi.models import LogoutNotice, RefreshToken, Session
from identity.models import Tenant, User
from identity.services.connections import create_connection
from identity.services.users import block_user, create_user, unblock_user, update_user
from tests.authapi.asgi_client import ask_token
from tests.factories.authapi import Registered
from tests.factories.identity import make_user
from tests.factories.logins import code_form, code_of, login_of, refresh_form, some_user, web_client
from tests.factories.sign_in import session_of

ALL = {"oidc_logout": {"backchannel_logout_urls": ["https://app.example.test/out"], "backchannel_logout_initiators": {"mode": "all"}}}
REFUSED = (403, "invalid_grant")


@pytest.fixture
def registered(tenant: Tenant) -> Registered:
    return web_client(tenant, settings=ALL)


def notices(tenant: Tenant) -> list[tuple[str, str]]:
    return list(LogoutNotice.objects.of(tenant.pk).order_by("pk").values_list("initiator", "subject"))


def open_session(user: User, registered: Registered) -> str:
    session, cookie = session_of(user)
    note_client(session, registered.client, protocol="oauth")
    return cookie


def outcome(tenant: Tenant, form: dict[str, Any]) -> tuple[int, Any]:
    answer = ask_token(tenant, form)
    return answer.status, answer.json().get("error")


def test_blocking_a_user_ends_sessions_codes_and_refresh_tokens_permanently(tenant: Tenant, registered: Registered) -> None:
    user, other = some_user(tenant), some_user(tenant, email="eve@example.test")
    login = login_of(tenant, registered, user, scope="openid offline_access")
    token = ask_token(tenant, code_form(registered, code_of(login))).json()["refresh_token"]
    code = code_of(login_of(tenant, registered, user))
    cookie, kept = open_session(user, registered), open_session(other, registered)
    block_user(tenant_id=tenant.pk, user_id=user.user_id)
    assert find_session(tenant_id=tenant.pk, cookie=kept) is not None
    assert set(notices(tenant)) == {("account-deactivated", user.user_id)}
    unblock_user(tenant_id=tenant.pk, user_id=user.user_id)
    assert find_session(tenant_id=tenant.pk, cookie=cookie) is None
    assert outcome(tenant, refresh_form(registered, token)) == REFUSED
    assert outcome(tenant, code_form(registered, code)) == REFUSED
    assert not RefreshToken.objects.of(tenant.pk).filter(user=user, revoked=None).exists()


def test_a_change_of_another_field_ends_no_session(tenant: Tenant, registered: Registered) -> None:
    user = some_user(tenant, email="ada@example.test")
    cookie = open_session(user, registered)
    for changes in ({"name": "Ada"}, {"blocked": False}, {"email": "ADA@example.test"}, {"email_verified": True}):
        update_user(tenant_id=tenant.pk, user_id=user.user_id, changes=changes)
        assert find_session(tenant_id=tenant.pk, cookie=cookie) is not None
    assert notices(tenant) == []


@pytest.mark.parametrize("email", ["lovelace@example.test", None])
def test_a_new_email_address_ends_sessions_and_keeps_refresh_tokens(tenant: Tenant, registered: Registered, email: str | None) -> None:
    user = some_user(tenant, email="ada@example.test", username="ada")
    login = login_of(tenant, registered, user, scope="openid offline_access")
    token = ask_token(tenant, code_form(registered, code_of(login))).json()["refresh_token"]
    cookie = open_session(user, registered)
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"email": email})
    assert find_session(tenant_id=tenant.pk, cookie=cookie) is None
    assert set(notices(tenant)) == {("email-identifier-changed", user.user_id)}
    assert ask_token(tenant, refresh_form(registered, token)).status == 200


def test_setting_the_first_email_address_ends_no_session(tenant: Tenant, registered: Registered) -> None:
    user = make_user(connection=some_user(tenant).connection, email=None, username="grace")
    cookie = open_session(user, registered)
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"email": "grace@example.test"})
    assert find_session(tenant_id=tenant.pk, cookie=cookie) is not None


def test_a_new_email_address_ends_no_session_of_users_with_another_identifier(tenant: Tenant, registered: Registered) -> None:
    options = {"signInEndpoint": "https://idp.example.test"}
    connection = create_connection(tenant_id=tenant.pk, name="directory", strategy="samlp", options=options)
    user = create_user(tenant_id=tenant.pk, connection=connection, email="ada@example.test")
    cookie = open_session(user, registered)
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"email": "lovelace@example.test"})
    assert find_session(tenant_id=tenant.pk, cookie=cookie) is not None
    assert Session.objects.of(tenant.pk).count() == 1
