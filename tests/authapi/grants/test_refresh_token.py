"""Refresh tokens: whether they rotate, how long they are valid, and how the reuse of one token revokes all tokens of its lineage."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connections, transaction
from django.utils import timezone

from authapi import tasks
from authapi.login.sessions import end_session
from authapi.models import RefreshToken, SignIn
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import revoke_client, update_client
from authapi.services.permissions import Named, add_user_permissions, remove_user_permissions
from authapi.tokens.refresh_tokens import locked_refresh_token
from authapi.tokens.revocation import revoke_lineage, revoke_refresh_tokens
from identity.models import Tenant, User
from identity.services.tenants import create_tenant
from identity.services.users import delete_user, update_user
from tests.authapi.asgi_client import Received, ask_token, read_profile
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.statements import statements_of
from tests.deadlines import eventually
from tests.factories.authapi import Registered
from tests.factories.logins import code_form, code_of, login_of, public_client, refresh_form, some_user, web_client

API = "urn:orders"
OTHER_API = "urn:stock"
INVALID = (403, {"error": "invalid_grant", "error_description": "Unknown or invalid refresh token."})
ROTATING = {"rotation_type": "rotating", "expiration_type": "expiring"}
SCOPES = [{"value": "read", "description": ""}, {"value": "write", "description": ""}]


def outcome(answer: Received) -> tuple[int, Any]:
    return answer.status, answer.json()


def client_with(tenant: Tenant, **settings: Any) -> Registered:
    """Create a confidential client whose refresh tokens rotate, unless `settings` (its settings of refresh tokens) say otherwise."""
    return web_client(tenant, settings={"refresh_token": {**ROTATING, **settings}})


def first_token(
    tenant: Tenant, registered: Registered, user: User | None = None, *, scope: str = "openid offline_access", **login: Any
) -> str:
    issue = login_of(tenant, registered, user or some_user(tenant), scope=scope, **login)
    return str(ask_token(tenant, code_form(registered, code_of(issue))).json()["refresh_token"])


def refresh(tenant: Tenant, registered: Registered, token: str, **changes: Any) -> Received:
    return ask_token(tenant, refresh_form(registered, token, **changes))


# --- Refusals ---------------------------------------------------------------------------------------------------------


def test_the_refusal_names_a_missing_token(tenant: Tenant) -> None:
    answer = refresh(tenant, web_client(tenant), "")
    assert outcome(answer) == (400, {"error": "invalid_request", "error_description": "Missing required parameter: refresh_token"})


def test_an_unknown_token_is_refused_with_the_text_that_client_libraries_look_for(tenant: Tenant) -> None:
    answer = refresh(tenant, web_client(tenant), "made-up")
    assert outcome(answer) == INVALID
    # A client library looks for this text.
    assert "invalid refresh token" in answer.json()["error_description"].lower()
    assert "www-authenticate" not in answer.headers


def test_another_client_can_neither_use_a_token_nor_end_its_lineage(tenant: Tenant) -> None:
    own, other = client_with(tenant), client_with(tenant)
    token = first_token(tenant, own)
    assert outcome(refresh(tenant, other, token)) == INVALID
    assert refresh(tenant, own, token).status == 200
    # The token was used before. If its own client sent it again, the lineage would end. Another client cannot end the lineage.
    successor = RefreshToken.objects.of(tenant.pk).get(revoked=None)
    assert outcome(refresh(tenant, other, token)) == INVALID
    successor.refresh_from_db()
    assert successor.revoked is None


def test_a_token_of_another_tenant_is_unknown(tenant: Tenant) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    assert outcome(refresh(other, client_with(other), first_token(tenant, client_with(tenant)))) == INVALID


def test_a_client_without_the_grant_type_gets_an_error_that_names_the_reason(tenant: Tenant) -> None:
    registered = client_with(tenant)
    token = first_token(tenant, registered)
    update_client(tenant_id=tenant.pk, client_id=registered.client_id, changes={"grant_types": ["authorization_code"]})
    answer = refresh(tenant, registered, token)
    assert (answer.status, answer.json()["error_description"]) == (403, "Grant type 'refresh_token' not allowed for the client.")


def test_a_revoked_client_gets_no_token(tenant: Tenant) -> None:
    registered = client_with(tenant)
    token = first_token(tenant, registered)
    revoke_client(tenant_id=tenant.pk, client_id=registered.client_id)
    assert refresh(tenant, registered, token).status == 401


def test_a_blocked_user_gets_no_token_even_after_the_block_is_lifted(tenant: Tenant) -> None:
    registered, user = client_with(tenant), some_user(tenant)
    token = first_token(tenant, registered, user)
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"blocked": True})
    assert outcome(refresh(tenant, registered, token)) == (403, {"error": "unauthorized", "error_description": "user is blocked"})
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"blocked": False})
    assert outcome(refresh(tenant, registered, token)) == INVALID


def test_a_deleted_user_gets_no_token(tenant: Tenant) -> None:
    registered, user = client_with(tenant), some_user(tenant)
    token = first_token(tenant, registered, user)
    delete_user(tenant_id=tenant.pk, user_id=user.user_id)
    assert outcome(refresh(tenant, registered, token)) == INVALID


# --- Rotation and reuse -----------------------------------------------------------------------------------------------


def test_reusing_a_rotated_token_ends_its_lineage(tenant: Tenant) -> None:
    registered, user = client_with(tenant), some_user(tenant)
    first = first_token(tenant, registered, user)
    bystander = first_token(tenant, registered, user)
    second = refresh(tenant, registered, first).json()
    third = refresh(tenant, registered, second["refresh_token"]).json()
    assert len({first, second["refresh_token"], third["refresh_token"]}) == 3

    assert outcome(refresh(tenant, registered, first)) == INVALID

    assert outcome(refresh(tenant, registered, third["refresh_token"])) == INVALID
    assert read_profile(tenant, third["access_token"]).status == 401
    assert refresh(tenant, registered, bystander).status == 200
    line = SignIn.objects.of(tenant.pk).get(type="ferrt")
    assert (line.is_success, line.user_id, line.client_id) == (False, user.user_id, registered.client_id)
    assert first not in repr(SignIn.objects.of(tenant.pk).values())


def test_a_non_rotating_token_stays_valid_and_the_answer_contains_no_new_token(tenant: Tenant) -> None:
    registered = client_with(tenant, rotation_type="non-rotating")
    token = first_token(tenant, registered)
    for _ in range(3):
        answer = refresh(tenant, registered, token)
        assert answer.status == 200
        assert "refresh_token" not in answer.json()


def test_only_tokens_of_public_clients_rotate_by_default(tenant: Tenant) -> None:
    public, confidential = public_client(tenant), web_client(tenant)
    assert "refresh_token" in refresh(tenant, public, first_token(tenant, public)).json()
    assert "refresh_token" not in refresh(tenant, confidential, first_token(tenant, confidential)).json()


def test_the_previous_token_returns_the_same_successor_within_the_leeway(tenant: Tenant) -> None:
    registered = client_with(tenant, leeway=30)
    first = first_token(tenant, registered)
    answers = [refresh(tenant, registered, first).json() for _ in range(3)]
    assert len({answer["refresh_token"] for answer in answers}) == 1
    assert len({answer["access_token"] for answer in answers}) == 3
    assert RefreshToken.objects.of(tenant.pk).filter(revoked=None).count() == 1
    assert refresh(tenant, registered, answers[0]["refresh_token"]).status == 200
    # The client has exchanged the successor, so the client did not lose it and needs no second copy. The previous token now counts as
    # stolen.
    assert outcome(refresh(tenant, registered, first)) == INVALID
    assert not RefreshToken.objects.of(tenant.pk).filter(revoked=None).exists()


def test_a_revoked_lineage_returns_no_successor_within_the_leeway(tenant: Tenant) -> None:
    registered = client_with(tenant, leeway=3600)
    first = first_token(tenant, registered)
    second = refresh(tenant, registered, first).json()["refresh_token"]
    row = RefreshToken.objects.of(tenant.pk).get(revoked=None)
    revoke_lineage(tenant_id=tenant.pk, lineage=row.lineage)
    assert outcome(refresh(tenant, registered, first)) == INVALID
    assert outcome(refresh(tenant, registered, second)) == INVALID
    assert not RefreshToken.objects.of(tenant.pk).filter(sealed_until__isnull=False).exists()


def test_the_successor_is_returned_again_only_to_its_own_client(tenant: Tenant) -> None:
    registered, other = client_with(tenant, leeway=30), client_with(tenant, leeway=30)
    first = first_token(tenant, registered)
    second = refresh(tenant, registered, first).json()["refresh_token"]
    assert outcome(refresh(tenant, other, first)) == INVALID
    assert refresh(tenant, registered, first).json()["refresh_token"] == second


def test_revoking_the_lineage_ends_the_access_tokens_of_every_answer(tenant: Tenant) -> None:
    registered = client_with(tenant, leeway=30)
    first = first_token(tenant, registered)
    tokens = [refresh(tenant, registered, first).json()["access_token"] for _ in range(2)]
    assert [read_profile(tenant, token).status for token in tokens] == [200, 200]
    revoke_lineage(tenant_id=tenant.pk, lineage=RefreshToken.objects.of(tenant.pk).get(revoked=None).lineage)
    assert [read_profile(tenant, token).status for token in tokens] == [401, 401]


def test_the_successor_is_stored_encrypted_until_the_leeway_ends(tenant: Tenant) -> None:
    registered = client_with(tenant, leeway=30)
    first = first_token(tenant, registered)
    second = refresh(tenant, registered, first).json()["refresh_token"]
    row = RefreshToken.objects.of(tenant.pk).get(is_rotated=True)
    assert second not in str(vars(row))
    tasks.prune()
    assert RefreshToken.objects.of(tenant.pk).get(is_rotated=True).sealed_successor == row.sealed_successor != ""
    with time_machine.travel(timezone.now() + timedelta(seconds=31)):
        tasks.prune()
    row.refresh_from_db()
    assert (row.sealed_successor, row.sealed_until) == ("", None)


def test_a_longer_leeway_does_not_apply_to_successors_that_are_already_stored(tenant: Tenant) -> None:
    registered = client_with(tenant, leeway=30)
    first = first_token(tenant, registered)
    refresh(tenant, registered, first)
    update_client(
        tenant_id=tenant.pk, client_id=registered.client.client_id, changes={"settings": {"refresh_token": {**ROTATING, "leeway": 600}}}
    )
    forget_all()
    with time_machine.travel(timezone.now() + timedelta(seconds=31)):
        assert outcome(refresh(tenant, registered, first)) == INVALID


def test_no_successor_is_stored_without_a_leeway(tenant: Tenant) -> None:
    registered = client_with(tenant)
    refresh(tenant, registered, first_token(tenant, registered))
    assert not RefreshToken.objects.of(tenant.pk).exclude(sealed_successor="").exists()


def test_a_token_older_than_the_previous_token_ends_the_lineage_within_the_leeway(tenant: Tenant) -> None:
    registered = client_with(tenant, leeway=30)
    first = first_token(tenant, registered)
    second = refresh(tenant, registered, first).json()["refresh_token"]
    third = refresh(tenant, registered, second).json()["refresh_token"]
    assert outcome(refresh(tenant, registered, first)) == INVALID
    assert outcome(refresh(tenant, registered, third)) == INVALID


def test_the_previous_token_ends_the_lineage_after_the_leeway(tenant: Tenant) -> None:
    registered = client_with(tenant, leeway=30)
    first = first_token(tenant, registered)
    second = refresh(tenant, registered, first).json()["refresh_token"]
    with time_machine.travel(timezone.now() + timedelta(seconds=31)):
        assert outcome(refresh(tenant, registered, first)) == INVALID
        assert outcome(refresh(tenant, registered, second)) == INVALID


def test_a_change_of_the_rotation_setting_ends_existing_tokens(tenant: Tenant) -> None:
    registered = client_with(tenant)
    token = first_token(tenant, registered)
    changes = {"settings": {"refresh_token": {**ROTATING, "rotation_type": "non-rotating"}}}
    update_client(tenant_id=tenant.pk, client_id=registered.client_id, changes=changes)
    assert outcome(refresh(tenant, registered, token)) == INVALID


@pytest.mark.parametrize(("leeway", "expected"), [(0, [200, 403, 403]), (60, [200, 200, 200])])
def test_concurrent_refreshes_run_one_after_another_and_the_leeway_decides_their_result(
    tenant: Tenant, leeway: int, expected: list[int]
) -> None:
    registered = client_with(tenant, leeway=leeway)
    token = first_token(tenant, registered)
    answers = at_once([lambda: refresh(tenant, registered, token)] * 3)
    assert sorted(answer.status for answer in answers) == expected
    alive = RefreshToken.objects.of(tenant.pk).filter(revoked=None).count()
    assert alive == (1 if leeway else 0)
    assert len({answer.json().get("refresh_token") for answer in answers if answer.status == 200}) == 1


def test_a_successor_created_during_a_revocation_of_its_lineage_is_revoked_too(tenant: Tenant) -> None:
    registered = client_with(tenant)
    token = first_token(tenant, registered)
    lineage = RefreshToken.objects.of(tenant.pk).get().lineage
    revoked = threading.Event()

    def revoke() -> None:
        revoke_lineage(tenant_id=tenant.pk, lineage=lineage)
        revoked.set()
        connections.close_all()

    thread = threading.Thread(target=revoke)
    with transaction.atomic():
        row = locked_refresh_token(tenant_id=tenant.pk, token=token)
        assert row is not None
        thread.start()
        eventually(waits_for_us)
        row.revoked, row.is_rotated = timezone.now(), True
        row.save(update_fields=["revoked", "is_rotated"])
        row.pk, row.wire_id, row.revoked, row.is_rotated, row._raw_token = None, "rt_successor" + tenant.pk, None, False, "successor"
        row._state.adding = True
        row.save(force_insert=True)
        assert not revoked.is_set()
    thread.join()
    assert not RefreshToken.objects.of(tenant.pk).filter(revoked=None).exists()


def waits_for_us() -> bool:
    """Return whether another database connection waits for a lock that this database connection holds."""
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))")
        return bool(cursor.fetchone()[0])


def at_once(calls: list[Any]) -> list[Received]:
    """Run each call in its own thread with its own database connection."""
    barrier, answers = threading.Barrier(len(calls)), []

    def run(call: Any) -> None:
        barrier.wait()
        answers.append(call())
        connections.close_all()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


# --- Lifetimes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rotation", ["rotating", "non-rotating"])
def test_no_use_of_a_token_extends_its_absolute_expiry(tenant: Tenant, rotation: str) -> None:
    registered = client_with(tenant, rotation_type=rotation, token_lifetime=100, idle_token_lifetime=60)
    token, begun = first_token(tenant, registered), timezone.now()
    for seconds in (50, 95):
        with time_machine.travel(begun + timedelta(seconds=seconds)):
            answer = refresh(tenant, registered, token)
            assert answer.status == 200
            token = answer.json().get("refresh_token", token)
    with time_machine.travel(begun + timedelta(seconds=101)):
        assert outcome(refresh(tenant, registered, token)) == INVALID


def test_a_token_that_is_not_used_expires_before_its_absolute_expiry(tenant: Tenant) -> None:
    registered = client_with(tenant, token_lifetime=1000, idle_token_lifetime=60)
    token = first_token(tenant, registered)
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert outcome(refresh(tenant, registered, token)) == INVALID


@pytest.mark.parametrize(
    "settings",
    [
        {"expiration_type": "non-expiring", "token_lifetime": 10, "idle_token_lifetime": 10},
        {"infinite_token_lifetime": True, "infinite_idle_token_lifetime": True},
    ],
)
def test_a_token_without_an_expiry_is_valid_after_years(tenant: Tenant, settings: dict[str, Any]) -> None:
    registered = client_with(tenant, **settings)
    token = first_token(tenant, registered)
    with time_machine.travel(timezone.now() + timedelta(days=2000)):
        assert refresh(tenant, registered, token).status == 200


def test_a_token_without_an_absolute_expiry_expires_when_it_is_not_used(tenant: Tenant) -> None:
    registered = client_with(tenant, infinite_token_lifetime=True, idle_token_lifetime=60)
    token = first_token(tenant, registered)
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert outcome(refresh(tenant, registered, token)) == INVALID


def test_an_online_token_ends_with_its_session(tenant: Tenant) -> None:
    registered = client_with(tenant)
    login = login_of(tenant, registered, some_user(tenant), scope="openid online_access")
    token = ask_token(tenant, code_form(registered, code_of(login))).json()["refresh_token"]
    token = refresh(tenant, registered, token).json()["refresh_token"]
    assert login.session is not None
    end_session(login.session, reason="rp-logout")
    assert outcome(refresh(tenant, registered, token)) == INVALID


def test_an_online_token_ends_when_its_session_expires_even_before_the_cleanup(tenant: Tenant) -> None:
    registered = client_with(tenant)
    login = login_of(tenant, registered, some_user(tenant), scope="openid online_access")
    token = ask_token(tenant, code_form(registered, code_of(login))).json()["refresh_token"]
    assert login.session is not None
    with time_machine.travel(login.session.idle_expires_at + timedelta(seconds=1)):
        assert outcome(refresh(tenant, registered, token)) == INVALID


@pytest.mark.parametrize("scope", ["openid offline_access", "openid online_access offline_access"])
def test_an_offline_token_is_valid_after_its_session_has_ended(tenant: Tenant, scope: str) -> None:
    registered = client_with(tenant)
    login = login_of(tenant, registered, some_user(tenant), scope=scope)
    token = ask_token(tenant, code_form(registered, code_of(login))).json()["refresh_token"]
    assert login.session is not None
    end_session(login.session, reason="rp-logout")
    assert refresh(tenant, registered, token).status == 200


# --- Scopes, audiences, id tokens -------------------------------------------------------------------------------------


def test_a_refresh_can_narrow_the_scopes_and_never_widen_them(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, scopes=SCOPES, settings={"allow_offline_access": True})
    registered = client_with(tenant)
    token = first_token(tenant, registered, scope="openid offline_access read", audience=API)
    narrowed = refresh(tenant, registered, token, scope="read write delete").json()
    assert (narrowed["scope"], "id_token" in narrowed) == ("read", False)
    # The successor has the scopes of the first token, because narrowing applies to one answer.
    assert refresh(tenant, registered, narrowed["refresh_token"]).json()["scope"] == "openid offline_access read"


def test_an_empty_scope_is_treated_like_a_missing_scope(tenant: Tenant) -> None:
    registered = client_with(tenant)
    answer = ask_token(tenant, {**refresh_form(registered, first_token(tenant, registered)), "scope": "", "audience": None}, as_json=True)
    assert answer.json()["scope"] == "openid offline_access"


def test_revoked_permissions_are_missing_after_the_next_refresh(tenant: Tenant) -> None:
    create_api_resource(
        tenant_id=tenant.pk, identifier=API, scopes=SCOPES, settings={"allow_offline_access": True, "enforce_policies": True}
    )
    registered, user = client_with(tenant, rotation_type="non-rotating"), some_user(tenant)
    both = [Named(API, "read"), Named(API, "write")]
    add_user_permissions(tenant_id=tenant.pk, user_id=user.user_id, permissions=both)
    token = first_token(tenant, registered, user, scope="offline_access read write", audience=API)
    assert refresh(tenant, registered, token).json()["scope"] == "offline_access read write"
    remove_user_permissions(tenant_id=tenant.pk, user_id=user.user_id, permissions=both[1:])
    assert refresh(tenant, registered, token).json()["scope"] == "offline_access read"


def test_a_request_for_another_audience_requires_a_policy_of_the_client(tenant: Tenant) -> None:
    for identifier in (API, OTHER_API):
        create_api_resource(tenant_id=tenant.pk, identifier=identifier, scopes=SCOPES, settings={"allow_offline_access": True})
    registered = client_with(tenant, policies=[{"audience": OTHER_API, "scope": ["write"]}], rotation_type="non-rotating")
    token = first_token(tenant, registered, scope="openid offline_access read", audience=API)

    refused = refresh(tenant, registered, token, audience="urn:elsewhere")
    assert (refused.status, refused.json()["error"]) == (403, "access_denied")
    assert "urn:elsewhere" in refused.json()["error_description"]

    answer = refresh(tenant, registered, token, audience=OTHER_API, scope="read write").json()
    claims = decoded(answer["access_token"])[1]
    assert (OTHER_API in claims["aud"] or claims["aud"] == OTHER_API, claims["scope"]) == (True, "write")
    same = refresh(tenant, registered, token, audience=API).json()
    assert decoded(same["access_token"])[1]["scope"] == "openid offline_access read"


def test_no_token_is_issued_for_an_api_that_now_denies_users(tenant: Tenant) -> None:
    resource = create_api_resource(tenant_id=tenant.pk, identifier=API, scopes=SCOPES, settings={"allow_offline_access": True})
    registered = client_with(tenant)
    token = first_token(tenant, registered, scope="offline_access read", audience=API)
    resource.settings = {**resource.settings, "subject_type_authorization": {"user": {"policy": "require_client_grant"}}}
    resource.save()
    forget_all()
    assert refresh(tenant, registered, token).status == 403
    create_client_grant(tenant_id=tenant.pk, client_id=registered.client_id, api_resource=resource, scopes=["read"], subject_type="user")
    forget_all()
    # The refusal did not use up the token.
    assert refresh(tenant, registered, token).status == 200


def test_the_id_token_of_a_refresh_repeats_user_and_time_of_the_login(tenant: Tenant) -> None:
    registered, user = client_with(tenant), some_user(tenant)
    login = login_of(tenant, registered, user, scope="openid profile offline_access", nonce="once")
    first = ask_token(tenant, code_form(registered, code_of(login))).json()
    with time_machine.travel(timezone.now() + timedelta(seconds=100)):
        second = refresh(tenant, registered, first["refresh_token"]).json()
    before, after = (decoded(answer["id_token"])[1] for answer in (first, second))
    for claim in ("iss", "sub", "aud", "auth_time", "sid"):
        assert before[claim] == after[claim]
    # OpenID Connect Core 1.0, 12.2. The request had no nonce, so the ID token has none. The ID token has a newer time of issue.
    assert ("nonce" in before, "nonce" in after) == (True, False)
    assert after["iat"] >= before["iat"] + 99


def test_the_next_id_token_contains_a_changed_profile(tenant: Tenant) -> None:
    registered, user = client_with(tenant), some_user(tenant)
    token = first_token(tenant, registered, user, scope="openid profile offline_access")
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"given_name": "Changed"})
    assert decoded(refresh(tenant, registered, token).json()["id_token"])[1]["given_name"] == "Changed"


# --- Revocation by administrators ---------------------------------------------------------------------------------------


def test_a_revocation_selects_tokens_by_user_client_audience_and_id(tenant: Tenant) -> None:
    one, other = client_with(tenant), client_with(tenant)
    user, friend = some_user(tenant), some_user(tenant)
    tokens = [(one, first_token(tenant, one, user)), (other, first_token(tenant, other, user)), (one, first_token(tenant, one, friend))]
    assert revoke_refresh_tokens(tenant_id=tenant.pk, user_id=user.pk, client_id=one.client_id) == 1
    assert revoke_refresh_tokens(tenant_id=tenant.pk, user_id=user.pk, audience=API) == 0
    assert [refresh(tenant, registered, token).status for registered, token in tokens] == [403, 200, 200]
    wire_id = RefreshToken.objects.of(tenant.pk).get(user=friend, revoked=None).wire_id
    assert revoke_refresh_tokens(tenant_id=f"{tenant.pk}-b", ids=[wire_id]) == 0
    assert revoke_refresh_tokens(tenant_id=tenant.pk, ids=[wire_id]) == 1
    assert revoke_refresh_tokens(tenant_id=tenant.pk, ids=[wire_id]) == 0


def test_a_revocation_without_criteria_is_refused(tenant: Tenant) -> None:
    with pytest.raises(ValueError, match="Name the refresh tokens"):
        revoke_refresh_tokens(tenant_id=tenant.pk)


def test_a_refresh_runs_three_statements_with_rotation_and_two_without_rotation(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"allow_offline_access": True})
    rotating, lasting = client_with(tenant), client_with(tenant, rotation_type="non-rotating")
    user = some_user(tenant)
    tokens = {client: first_token(tenant, client, user, audience=API) for client in (rotating, lasting)}
    assert statements_of(tenant, rotating, refresh_form(rotating, tokens[rotating])) == ["SELECT", "UPDATE", "INSERT"]
    assert statements_of(tenant, lasting, refresh_form(lasting, tokens[lasting])) == ["SELECT", "UPDATE"]
