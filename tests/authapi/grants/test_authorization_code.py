"""The exchange of authorization codes: only once, only by the client of the code, and only with the verifier of its challenge."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest
import time_machine
from django.db import connections, transaction
from django.utils import timezone

from authapi.login.sessions import end_session
from authapi.models import AuthorizationCode, RefreshToken, SignIn
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import revoke_client, rotate_client_secret, update_client
from authapi.tokens.authorization_codes import locked_code
from authapi.tokens.revocation import revoke_lineage
from identity.models import Tenant
from identity.services.tenants import create_tenant
from identity.services.users import delete_user, update_user
from tests.authapi.asgi_client import Received, ask_token, read_profile
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.statements import statements_of
from tests.factories.authapi import Registered
from tests.factories.logins import (
    CALLBACK,
    VERIFIER,
    challenge_of,
    code_form,
    code_of,
    login_of,
    public_client,
    refresh_form,
    some_user,
    web_client,
)

API = "urn:orders"
INVALID_CODE = (403, {"error": "invalid_grant", "error_description": "Invalid authorization code"})
WRONG_VERIFIER = (403, {"error": "invalid_grant", "error_description": "Failed to verify code verifier"})


def outcome(answer: Received) -> tuple[int, Any]:
    return answer.status, answer.json()


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["", "None", "undefined", None])
def test_the_refusal_names_a_missing_code(tenant: Tenant, code: str | None) -> None:
    answer = ask_token(tenant, {**code_form(web_client(tenant), "x"), "code": code}, as_json=True)
    assert outcome(answer) == (400, {"error": "invalid_request", "error_description": "Missing required parameter: code"})


def test_an_unknown_code_is_invalid(tenant: Tenant) -> None:
    answer = ask_token(tenant, code_form(web_client(tenant), "made-up"))
    assert outcome(answer) == INVALID_CODE
    assert "www-authenticate" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"


def test_another_client_can_neither_use_nor_use_up_a_code(tenant: Tenant) -> None:
    own, other = web_client(tenant), web_client(tenant)
    code = code_of(login_of(tenant, own, some_user(tenant)))
    assert outcome(ask_token(tenant, code_form(other, code))) == INVALID_CODE
    assert ask_token(tenant, code_form(own, code)).status == 200


def test_a_code_of_another_tenant_is_unknown(tenant: Tenant) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    code = code_of(login_of(tenant, web_client(tenant), some_user(tenant)))
    assert outcome(ask_token(other, code_form(web_client(other), code))) == INVALID_CODE
    with transaction.atomic():
        assert locked_code(tenant_id=tenant.pk, code=code) is not None
        assert locked_code(tenant_id=other.pk, code=code) is None


def test_a_code_is_valid_for_a_minute(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)))
    made_at = timezone.now()
    with time_machine.travel(made_at.timestamp() + 61, tick=False):
        assert outcome(ask_token(tenant, code_form(registered, code))) == INVALID_CODE
    with time_machine.travel(made_at.timestamp() + 58, tick=False):
        assert ask_token(tenant, code_form(registered, code)).status == 200


def test_the_redirect_uri_must_equal_the_redirect_uri_of_the_request(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)))
    for wrong in (CALLBACK + "/", CALLBACK.upper(), CALLBACK + "?x=1", "https://attacker.example.test/"):
        answer = ask_token(tenant, code_form(registered, code, redirect_uri=wrong))
        assert (answer.status, answer.json()["error"]) == (403, "invalid_grant")
        assert "redirect_uri" in answer.json()["error_description"]
    answer = ask_token(tenant, code_form(registered, code, redirect_uri=None))
    assert outcome(answer) == (400, {"error": "invalid_request", "error_description": "Missing required parameter: redirect_uri"})
    assert ask_token(tenant, code_form(registered, code)).status == 200


def test_the_exchange_needs_a_redirect_uri_only_if_the_request_had_one(tenant: Tenant) -> None:
    registered, user = web_client(tenant), some_user(tenant)
    first, second = (code_of(login_of(tenant, registered, user), is_redirect_uri_given=False) for _ in range(2))
    assert ask_token(tenant, code_form(registered, first, redirect_uri=None)).status == 200
    assert ask_token(tenant, code_form(registered, second, redirect_uri="https://attacker.example.test/")).status == 403
    assert ask_token(tenant, code_form(registered, second)).status == 200


@pytest.mark.parametrize("verifier", ["a" * 43, VERIFIER + "x", VERIFIER.lower(), "short", "ä" * 50])
@pytest.mark.parametrize("make", [public_client, web_client])
def test_a_verifier_that_does_not_match_the_challenge_is_refused(tenant: Tenant, make: Any, verifier: str) -> None:
    registered = make(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)), challenge=challenge_of(VERIFIER))
    assert outcome(ask_token(tenant, code_form(registered, code, code_verifier=verifier))) == WRONG_VERIFIER


def test_the_refusal_names_a_missing_verifier(tenant: Tenant) -> None:
    registered = public_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)))
    answer = ask_token(tenant, code_form(registered, code, code_verifier=None))
    assert outcome(answer) == (400, {"error": "invalid_request", "error_description": "Missing required parameter: code_verifier"})


def test_a_verifier_without_a_challenge_is_refused_as_a_downgrade(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)), challenge="")
    assert outcome(ask_token(tenant, code_form(registered, code, code_verifier=VERIFIER))) == WRONG_VERIFIER


def test_a_public_client_cannot_exchange_a_code_that_has_no_challenge(tenant: Tenant) -> None:
    registered = public_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)), challenge="")
    assert outcome(ask_token(tenant, code_form(registered, code, code_verifier=None))) == WRONG_VERIFIER


def test_a_plain_challenge_is_compared_without_hashing(tenant: Tenant) -> None:
    registered, user = public_client(tenant), some_user(tenant)
    first, second = (code_of(login_of(tenant, registered, user), challenge=VERIFIER, method="plain") for _ in range(2))
    assert outcome(ask_token(tenant, code_form(registered, first, code_verifier="b" * 43))) == WRONG_VERIFIER
    assert ask_token(tenant, code_form(registered, second)).status == 200


def test_a_confidential_client_must_authenticate_to_exchange_a_code(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)))
    for secret in (None, "wrong"):
        answer = ask_token(tenant, code_form(registered, code, client_secret=secret))
        assert outcome(answer) == (401, {"error": "access_denied", "error_description": "Unauthorized"})
    assert ask_token(tenant, code_form(registered, code)).status == 200


def test_a_client_without_the_code_grant_gets_an_error_that_names_the_cause(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)))
    update_client(tenant_id=tenant.pk, client_id=registered.client_id, changes={"grant_types": ["client_credentials"]})
    answer = ask_token(tenant, code_form(registered, code))
    assert answer.status == 403
    assert answer.json()["error_description"] == "Grant type 'authorization_code' not allowed for the client."


def test_a_revoked_client_gets_no_token(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)))
    revoke_client(tenant_id=tenant.pk, client_id=registered.client_id)
    assert ask_token(tenant, code_form(registered, code)).status == 401


def test_a_blocked_user_gets_no_token(tenant: Tenant) -> None:
    registered, user = web_client(tenant), some_user(tenant)
    code = code_of(login_of(tenant, registered, user))
    update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"blocked": True})
    answer = ask_token(tenant, code_form(registered, code))
    assert outcome(answer) == (403, {"error": "unauthorized", "error_description": "user is blocked"})


def test_a_deleted_user_gets_no_token(tenant: Tenant) -> None:
    registered, user = web_client(tenant), some_user(tenant)
    code = code_of(login_of(tenant, registered, user))
    delete_user(tenant_id=tenant.pk, user_id=user.user_id)
    assert outcome(ask_token(tenant, code_form(registered, code))) == INVALID_CODE


def test_an_ended_session_makes_its_code_invalid(tenant: Tenant) -> None:
    registered = web_client(tenant)
    login = login_of(tenant, registered, some_user(tenant))
    code = code_of(login)
    assert login.session is not None
    end_session(login.session, reason="rp-logout")
    assert outcome(ask_token(tenant, code_form(registered, code))) == INVALID_CODE


# --- Replay -----------------------------------------------------------------------------------------------------------


def test_the_second_use_of_a_code_ends_every_token_issued_for_it(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"allow_offline_access": True})
    registered, user = web_client(tenant), some_user(tenant)
    login = login_of(tenant, registered, user, scope="openid offline_access", audience=API)
    code = code_of(login)
    first = ask_token(tenant, code_form(registered, code)).json()
    second = ask_token(tenant, refresh_form(registered, first["refresh_token"])).json()
    bystander = ask_token(tenant, code_form(registered, code_of(login_of(tenant, registered, user, audience=API)))).json()
    assert all(read_profile(tenant, answer["access_token"]).status == 200 for answer in (first, second, bystander))

    assert outcome(ask_token(tenant, code_form(registered, code))) == INVALID_CODE

    forget_all()
    assert [read_profile(tenant, answer["access_token"]).status for answer in (first, second)] == [401, 401]
    assert read_profile(tenant, bystander["access_token"]).status == 200
    assert ask_token(tenant, refresh_form(registered, first["refresh_token"])).status == 403
    line = SignIn.objects.of(tenant.pk).get(type="feacft")
    assert (line.is_success, line.user_id, line.client_id) == (False, user.user_id, registered.client_id)


def test_a_replay_of_a_code_ends_an_opaque_token_too(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)))
    token = ask_token(tenant, code_form(registered, code)).json()["access_token"]
    assert read_profile(tenant, token).status == 200
    assert ask_token(tenant, code_form(registered, code)).status == 403
    assert read_profile(tenant, token).status == 401


def test_a_used_code_sent_by_another_client_ends_no_token(tenant: Tenant) -> None:
    registered, other = web_client(tenant), web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)))
    token = ask_token(tenant, code_form(registered, code)).json()["access_token"]
    assert ask_token(tenant, code_form(other, code)).status == 403
    assert read_profile(tenant, token).status == 200


def test_one_of_several_concurrent_exchanges_succeeds_and_the_other_exchanges_revoke_its_tokens(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant), scope="openid offline_access"))
    barrier, answers = threading.Barrier(4), []

    def exchange() -> None:
        barrier.wait()
        answers.append(ask_token(tenant, code_form(registered, code)))
        connections.close_all()

    threads = [threading.Thread(target=exchange) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answer.status for answer in answers) == [200, 403, 403, 403]
    won = next(answer.json() for answer in answers if answer.status == 200)
    assert read_profile(tenant, won["access_token"]).status == 401
    assert ask_token(tenant, refresh_form(registered, won["refresh_token"])).status == 403


# --- Answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("make", [public_client, web_client])
def test_a_valid_exchange_returns_the_members_that_clients_read(tenant: Tenant, make: Any, as_json: bool) -> None:
    registered = make(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant), scope="openid profile offline_access unheard-of"))
    answer = ask_token(tenant, code_form(registered, code), as_json=as_json)
    members = answer.json()
    assert answer.status == 200
    assert members.keys() == {"access_token", "token_type", "expires_in", "scope", "id_token", "refresh_token"}
    assert (members["token_type"], members["expires_in"], members["scope"]) == ("Bearer", 86400, "openid profile offline_access")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"


def test_an_id_token_requires_openid_and_a_refresh_token_requires_offline_access(tenant: Tenant) -> None:
    registered = web_client(tenant)
    members = ask_token(tenant, code_form(registered, code_of(login_of(tenant, registered, some_user(tenant), scope="profile")))).json()
    assert members.keys() == {"access_token", "token_type", "expires_in", "scope"}


def test_no_refresh_token_is_issued_if_the_api_does_not_allow_it(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    registered = web_client(tenant)
    login = login_of(tenant, registered, some_user(tenant), scope="openid offline_access", audience=API)
    members = ask_token(tenant, code_form(registered, code_of(login))).json()
    assert "refresh_token" not in members
    assert members["scope"] == "openid"


def test_no_refresh_token_is_issued_to_a_client_without_the_refresh_grant(tenant: Tenant) -> None:
    registered = web_client(tenant, grant_types=["authorization_code"])
    members = ask_token(
        tenant, code_form(registered, code_of(login_of(tenant, registered, some_user(tenant), scope="openid offline_access")))
    ).json()
    assert "refresh_token" not in members


def test_codes_and_tokens_are_not_stored_in_plain_text(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant), scope="openid offline_access"))
    members = ask_token(tenant, code_form(registered, code)).json()
    rows = [*AuthorizationCode.objects.of(tenant.pk).values(), *RefreshToken.objects.of(tenant.pk).values()]
    kept = repr(rows)
    for secret in (code, members["access_token"], members["refresh_token"], members["id_token"]):
        assert secret not in kept


def test_the_nonce_of_the_request_is_in_the_id_token(tenant: Tenant) -> None:
    registered = web_client(tenant)
    login = login_of(tenant, registered, some_user(tenant), nonce="n-0S6_WzA2Mj")
    members = ask_token(tenant, code_form(registered, code_of(login))).json()
    assert decoded(members["id_token"])[1]["nonce"] == "n-0S6_WzA2Mj"


def test_permissions_revoked_after_the_login_are_not_issued(tenant: Tenant) -> None:
    resource = create_api_resource(
        tenant_id=tenant.pk, identifier=API, scopes=[{"value": "read", "description": ""}, {"value": "write", "description": ""}]
    )
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant), scope="openid read write", audience=API))
    resource.scopes = [{"value": "read", "description": ""}]
    resource.save()
    forget_all()
    assert ask_token(tenant, code_form(registered, code)).json()["scope"] == "openid read"


def test_a_missing_signing_secret_is_reported_before_the_code_is_used(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)))
    update_client(tenant_id=tenant.pk, client_id=registered.client_id, changes={"algorithm": "HS256"})
    answer = ask_token(tenant, code_form(registered, code))
    assert (answer.status, answer.json()["error"]) == (403, "unauthorized_client")
    client, secret = rotate_client_secret(tenant_id=tenant.pk, client_id=registered.client_id)
    assert ask_token(tenant, code_form(Registered(client, secret), code)).status == 200


def test_an_exchange_runs_four_database_statements(tenant: Tenant) -> None:
    registered, user = web_client(tenant), some_user(tenant)
    first, second = (code_of(login_of(tenant, registered, user, scope="openid offline_access")) for _ in range(2))
    assert statements_of(tenant, registered, code_form(registered, first))
    # The first statement locks the code. The other statements write an opaque token, the use of the code and a refresh token.
    assert statements_of(tenant, registered, code_form(registered, second)) == ["SELECT", "INSERT", "UPDATE", "INSERT"]


def test_revoking_an_unknown_lineage_does_nothing(tenant: Tenant) -> None:
    revoke_lineage(tenant_id=tenant.pk, lineage=uuid.uuid4())
    assert SignIn.objects.of(tenant.pk).count() == 0
