"""`/delegation` and `/tokeninfo`: the accepted tokens, and the clients for which new tokens are issued."""

from __future__ import annotations

import time
from typing import Any

import pytest

from authapi import client_auth
from authapi.models import Client, Session, SignIn
from authapi.protocols.legacy.opting_in import DELEGATION_BY_ID_TOKEN, DELEGATION_BY_REFRESH_TOKEN, LEGACY_GRANTS
from authapi.protocols.legacy.requests import JWT_BEARER
from authapi.services.clients import create_client
from authapi.tokens.id_tokens import id_token
from identity.services.connections import update_connection
from identity.services.users import delete_user, update_user
from tests.authapi.asgi_client import Received
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.protocols.legacy.conftest import EMAIL, GRANTS, OldClient, change, refusal
from tests.factories.authapi import Registered, global_client
from tests.factories.identity import make_user
from tests.factories.logins import login_of

INVALID = (401, "invalid_token", "The id_token is invalid or has expired.")
NOT_ALLOWED = (400, "invalid_request", "The target is unknown or does not allow delegation by this client.")


def token_of(old: OldClient) -> str:
    return str(old.log_in().json()["id_token"])


def target_of(old: OldClient, *, allows: bool = True, **settings: Any) -> Client:
    """Create another client at which users can log in. With `allows`, it allows delegation by the client of `old`."""
    allowed = [old.client.client_id] if allows else []
    client, _ = create_client(tenant_id=old.tenant.pk, name="Target", settings={"allowed_clients": allowed, **settings})
    enabled = [old.client.client_id, client.client_id]
    update_connection(tenant_id=old.tenant.pk, connection_id=old.connection.pk, changes={"enabled_clients": enabled})
    return client


def delegate(old: OldClient, **changes: Any) -> Received:
    form = {"client_id": old.client.client_id, "grant_type": JWT_BEARER, "api_type": "app", "scope": "openid email"}
    return old.ask("/delegation", {**form, **changes})


@pytest.mark.parametrize("missing", ["client_id", "grant_type"])
def test_the_refusal_names_a_missing_parameter(old: OldClient, missing: str) -> None:
    answer = delegate(old, id_token="x", **{missing: None})
    assert refusal(answer) == (400, "invalid_request", f"missing {missing} parameter")


def test_another_grant_type_or_api_is_refused(old: OldClient) -> None:
    assert refusal(delegate(old, id_token="x", grant_type="password")) == (400, "invalid_request", f"The grant_type must be {JWT_BEARER}.")
    status, error, words = refusal(delegate(old, id_token="x", api_type="aws"))
    assert (status, error, words.startswith("Unsupported api_type: aws.")) == (400, "invalid_request", True)


@pytest.mark.parametrize("tokens", [{}, {"id_token": "a", "refresh_token": "b"}])
def test_exactly_one_token_is_required(old: OldClient, tokens: dict[str, str]) -> None:
    assert refusal(delegate(old, **tokens)) == (400, "invalid_request", "Send either an id_token or a refresh_token.")


@pytest.mark.parametrize(("kind", "grant"), [("id_token", DELEGATION_BY_ID_TOKEN), ("refresh_token", DELEGATION_BY_REFRESH_TOKEN)])
def test_a_client_without_the_grant_is_refused(old: OldClient, kind: str, grant: str) -> None:
    change(old.client, grant_types=[name for name in GRANTS if name != grant])
    assert refusal(delegate(old, **{kind: "x"})) == (403, "unauthorized_client", f"Grant type '{grant}' not allowed for the client.")


def test_a_token_is_exchanged_for_an_id_token_for_the_target(old: OldClient) -> None:
    target, token = target_of(old), token_of(old)
    answer = delegate(old, id_token=token, target=target.client_id)
    assert answer.json().keys() == {"id_token", "token_type", "expires_in"}
    claims, before = decoded(answer.json()["id_token"])[1], decoded(token)[1]
    assert (claims["aud"], claims["sub"], claims["email"]) == (target.client_id, old.user.user_id, EMAIL)
    # A delegation is not a login: the new token has the login time and the methods of the first token.
    assert (claims["auth_time"], claims["amr"], "sid" in claims) == (before["auth_time"], ["pwd"], False)
    assert SignIn.objects.of(old.tenant.pk).filter(type="sd", details__target=target.client_id).exists()


def test_a_token_is_for_the_client_itself_if_the_request_names_no_target(old: OldClient) -> None:
    assert decoded(delegate(old, id_token=token_of(old)).json()["id_token"])[1]["aud"] == old.client.client_id


def test_a_target_that_forbids_delegation_is_refused_like_an_unknown_target(old: OldClient, second: OldClient) -> None:
    token, silent = token_of(old), target_of(old, allows=False)
    for target in (silent.client_id, "nobody", second.client.client_id):
        assert refusal(delegate(old, id_token=token, target=target)) == NOT_ALLOWED


def test_no_token_is_issued_for_a_target_at_which_the_user_cannot_log_in(old: OldClient) -> None:
    token, target = token_of(old), target_of(old)
    change(target, settings={"organization_usage": "require"})
    assert refusal(delegate(old, id_token=token, target=target.client_id))[:2] == (403, "access_denied")
    change(target, settings={"organization_usage": None}, is_first_party=False)
    assert refusal(delegate(old, id_token=token, target=target.client_id))[:2] == (403, "access_denied")
    change(target, is_first_party=True)
    update_connection(tenant_id=old.tenant.pk, connection_id=old.connection.pk, changes={"enabled_clients": [old.client.client_id]})
    assert refusal(delegate(old, id_token=token, target=target.client_id)) == (400, "invalid_request", "the connection was disabled")


def test_a_token_of_another_client_is_refused(old: OldClient) -> None:
    other = target_of(old)
    registered = Registered(other, "")
    foreign = id_token(login_of(old.tenant, registered, old.user, scope="openid"))
    assert refusal(delegate(old, id_token=foreign)) == INVALID


def test_a_token_of_another_tenant_is_refused(old: OldClient, second: OldClient) -> None:
    assert refusal(delegate(old, id_token=token_of(second))) == INVALID


def test_an_expired_token_is_refused(old: OldClient, time_machine: Any) -> None:
    token = token_of(old)
    time_machine.move_to(time.time() + 37_000)
    forget_all()
    assert refusal(delegate(old, id_token=token)) == INVALID


@pytest.mark.parametrize("token", ["x", "a.b.c", "é", "x" * 20_000])
def test_a_malformed_token_is_refused(old: OldClient, token: str) -> None:
    assert refusal(delegate(old, id_token=token)) == INVALID
    assert refusal(old.ask("/tokeninfo", {"id_token": token})) == INVALID


def test_an_access_token_is_not_accepted_as_an_id_token(old: OldClient) -> None:
    assert refusal(delegate(old, id_token=old.log_in().json()["access_token"])) == INVALID


def test_the_token_of_an_ended_session_is_refused(old: OldClient) -> None:
    login = login_of(old.tenant, Registered(old.client, ""), old.user, scope="openid")
    token = id_token(login)
    assert delegate(old, id_token=token).status == 200
    Session.objects.of(old.tenant.pk).delete()
    assert refusal(delegate(old, id_token=token)) == INVALID


def test_a_blocked_user_gets_no_token(old: OldClient) -> None:
    token = token_of(old)
    update_user(tenant_id=old.tenant.pk, user_id=old.user.user_id, changes={"blocked": True})
    assert refusal(delegate(old, id_token=token)) == (401, "unauthorized", "user is blocked")
    assert refusal(old.ask("/tokeninfo", {"id_token": token})) == (401, "unauthorized", "user is blocked")


def test_the_eleventh_delegation_in_a_minute_is_refused(old: OldClient) -> None:
    token = token_of(old)
    assert [delegate(old, id_token=token).status for _ in range(10)] == [200] * 10
    assert refusal(delegate(old, id_token=token))[:2] == (429, "too_many_requests")


def test_a_non_rotating_refresh_token_can_be_delegated(old: OldClient) -> None:
    change(old.client, settings={"refresh_token": {"rotation_type": "non-rotating", "expiration_type": "non-expiring"}})
    token = old.log_in(scope="openid offline_access").json()["refresh_token"]
    for _ in range(2):
        assert decoded(delegate(old, refresh_token=token).json()["id_token"])[1]["sub"] == old.user.user_id


def test_a_refresh_token_of_another_client_or_tenant_is_refused(old: OldClient, second: OldClient) -> None:
    stays = {"refresh_token": {"rotation_type": "non-rotating", "expiration_type": "non-expiring"}}
    for one in (old, second):
        change(one.client, settings=stays)
    token = second.log_in(scope="openid offline_access").json()["refresh_token"]
    unknown = (401, "invalid_token", "Unknown or invalid refresh token.")
    assert refusal(delegate(old, refresh_token=token)) == unknown
    assert refusal(delegate(old, refresh_token="made-up")) == unknown
    own = old.log_in(scope="openid offline_access").json()["refresh_token"]
    other = target_of(old)
    change(other, grant_types=list(LEGACY_GRANTS), settings=stays)
    assert refusal(delegate(old, client_id=other.client_id, refresh_token=own)) == unknown


def test_rotating_refresh_tokens_cannot_be_delegated(old: OldClient) -> None:
    change(old.client, settings={"refresh_token": {"rotation_type": "rotating", "expiration_type": "expiring"}})
    token = old.log_in(scope="openid offline_access").json()["refresh_token"]
    assert refusal(delegate(old, refresh_token=token))[:2] == (400, "invalid_request")


# --- /tokeninfo -------------------------------------------------------------------------------------------------------


def test_tokeninfo_returns_the_profile_of_a_token(old: OldClient) -> None:
    everything = global_client(old.tenant)
    profile = old.ask("/tokeninfo", {"id_token": token_of(old)}).json()
    assert (profile["user_id"], profile["email"], profile["clientID"]) == (old.user.user_id, EMAIL, old.client.client_id)
    assert profile["global_client_id"] == everything.client_id
    assert not profile.keys() & {"app_metadata", "user_metadata"}


def test_tokeninfo_names_a_missing_parameter_and_refuses_tokens_of_other_tenants(old: OldClient, second: OldClient) -> None:
    assert refusal(old.ask("/tokeninfo", {})) == (400, "invalid_request", "missing id_token parameter")
    assert refusal(old.ask("/tokeninfo", {"id_token": token_of(second)})) == INVALID


def test_tokeninfo_refuses_clients_without_a_legacy_grant(old: OldClient) -> None:
    token = token_of(old)
    change(old.client, grant_types=["authorization_code"])
    client_auth.clients.clear()
    words = "The client has no legacy grant, which this endpoint needs."
    assert refusal(old.ask("/tokeninfo", {"id_token": token})) == (403, "unauthorized_client", words)


def test_the_token_of_a_deleted_user_is_refused(old: OldClient) -> None:
    other = make_user(connection=old.connection, email="bob@example.test")
    token = id_token(login_of(old.tenant, Registered(old.client, ""), other, scope="openid"))
    delete_user(tenant_id=old.tenant.pk, user_id=other.user_id)
    assert refusal(old.ask("/tokeninfo", {"id_token": token})) == INVALID
