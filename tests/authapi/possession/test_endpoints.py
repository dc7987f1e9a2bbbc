"""Bound tokens at the endpoints that issue tokens and at `/userinfo`: stolen tokens, replayed proofs, nonces (RFC 9449)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from joserfc import jwt
from joserfc.jwk import KeySet

from authapi.possession import replays
from authapi.possession.nonces import current_nonce, is_current
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import update_client
from authapi.services.resource_changes import update_api_resource
from authapi.views import HOT_ENDPOINTS
from identity.models import Tenant
from tests.authapi.asgi_client import FORM, Received, ask_token, get, read_profile, send
from tests.authapi.browser import Browser
from tests.authapi.certificates import certificate, edge_key, forwarded
from tests.authapi.login.conftest import Login
from tests.authapi.memory import forget_all
from tests.authapi.proving import Prover, settle_memory
from tests.authapi.pushing import Pusher
from tests.authapi.token_forms import form_of
from tests.factories.authapi import Registered, granted_client, host_of
from tests.factories.logins import code_form, code_of, login_of, public_client, refresh_form, some_user, web_client
from tests.factories.sign_in import people, person
from tests.factories.sign_in import web_client as signing_client

API = "https://bank.example.test"


@pytest.fixture(autouse=True)
def _settled() -> None:
    settle_memory()


@pytest.fixture
def prover() -> Prover:
    return Prover()


def at_token(tenant: Tenant) -> str:
    return f"{host_of(tenant).issuer}oauth/token"


def ask(tenant: Tenant, form: dict[str, Any], proof: str, **headers: str) -> Received:
    return ask_token(tenant, form, headers={"DPoP": proof, **headers})


def proven(tenant: Tenant, form: dict[str, Any], prover: Prover) -> Received:
    """Request tokens with a proof, and again with the nonce if the service requires a nonce."""
    return prover.proven(lambda: ask(tenant, form, prover.proof("POST", at_token(tenant))))


def claims_of(tenant: Tenant, token: str) -> dict[str, Any]:
    published = KeySet.import_key_set(get(tenant, "/.well-known/jwks.json").json())
    return jwt.decode(token, published, algorithms=["RS256"]).claims


def profile(tenant: Tenant, token: str, proof: str, scheme: str = "DPoP") -> Received:
    headers = {"Authorization": f"{scheme} {token}", **({"DPoP": proof} if proof else {})}
    return read_profile(tenant, None, headers=headers)


def at_profile(tenant: Tenant) -> str:
    return f"{host_of(tenant).issuer}userinfo"


def bound_token(tenant: Tenant, prover: Prover, registered: Registered | None = None, **changes: Any) -> str:
    """Return a user's token that is bound to the key of `prover`."""
    registered = registered or web_client(tenant)
    code = login_of(tenant, registered, some_user(tenant))
    answer = proven(tenant, code_form(registered, code_of(code), **changes), prover)
    assert answer.status == 200, answer.body
    return str(answer.json()["access_token"])


# --- The token endpoint -------------------------------------------------------------------------------------------------------


def test_a_proof_binds_the_token_to_the_key_of_the_proof(tenant: Tenant, prover: Prover) -> None:
    answer = ask(tenant, form_of(tenant, granted_client(tenant)), prover.proof("POST", at_token(tenant)))
    assert (answer.status, answer.json()["token_type"]) == (200, "DPoP")
    assert claims_of(tenant, answer.json()["access_token"])["cnf"] == {"jkt": prover.thumbprint}
    assert is_current(answer.headers["dpop-nonce"], tenant.pk, replays.used_proofs().generation().name)
    assert "DPoP-Nonce" in answer.headers["access-control-expose-headers"]


def test_a_request_without_a_proof_gets_an_unbound_token_and_no_nonce(tenant: Tenant) -> None:
    answer = ask_token(tenant, form_of(tenant, granted_client(tenant)))
    assert answer.json()["token_type"] == "Bearer"
    assert "cnf" not in claims_of(tenant, answer.json()["access_token"])
    assert "dpop-nonce" not in answer.headers


def test_a_proof_is_accepted_once(tenant: Tenant, prover: Prover) -> None:
    form, proof = form_of(tenant, granted_client(tenant)), prover.proof("POST", at_token(tenant))
    assert ask(tenant, form, proof).status == 200
    answer = ask(tenant, form, proof)
    assert (answer.status, answer.json()["error"]) == (400, "invalid_dpop_proof")
    assert "used before" in answer.json()["error_description"]
    assert "www-authenticate" not in answer.headers


@pytest.mark.parametrize("make", [lambda p, a: p.proof("GET", a), lambda p, a: p.proof("POST", a + "x"), lambda p, a: "x", lambda p, a: ""])
def test_a_proof_for_another_request_is_refused(tenant: Tenant, prover: Prover, make: Callable[[Prover, str], str]) -> None:
    answer = ask(tenant, form_of(tenant, granted_client(tenant)), make(prover, at_token(tenant)))
    assert (answer.status, answer.json()["error"]) == (400, "invalid_dpop_proof")


def test_a_repeated_dpop_header_is_refused_even_if_its_spelling_differs(tenant: Tenant, prover: Prover) -> None:
    form = "&".join(f"{name}={value}" for name, value in form_of(tenant, granted_client(tenant)).items()).encode()
    good, address = prover.proof("POST", at_token(tenant)), f"{tenant.pk}.example.test"
    for second in (prover.proof("POST", at_token(tenant)), good, ""):
        repeated = (("DPoP", good), ("dpop", second))
        sent = {"Content-Type": FORM}
        answer = send(HOT_ENDPOINTS["/oauth/token"], "POST", host=address, headers=sent, chunks=(form,), repeated=repeated)
        assert (answer.status, answer.json()["error_description"]) == (400, "There must be one DPoP header.")


def test_a_proof_for_another_tenant_is_refused(tenant: Tenant, prover: Prover) -> None:
    proof = prover.proof("POST", "http://other.example.test/oauth/token")
    assert ask(tenant, form_of(tenant, granted_client(tenant)), proof).json()["error"] == "invalid_dpop_proof"


def test_the_answer_to_an_unauthenticated_client_does_not_depend_on_its_proof(tenant: Tenant, prover: Prover) -> None:
    form = form_of(tenant, granted_client(tenant), client_secret="wrong")
    assert ask(tenant, form, "nonsense").json()["error"] == "access_denied"


# --- Nonces -------------------------------------------------------------------------------------------------------------------


def test_a_public_client_must_send_a_nonce(tenant: Tenant, prover: Prover) -> None:
    registered = public_client(tenant)
    form = code_form(registered, code_of(login_of(tenant, registered, some_user(tenant))))
    answer = ask(tenant, form, prover.proof("POST", at_token(tenant)))
    assert (answer.status, answer.json()["error"]) == (400, "use_dpop_nonce")
    assert answer.json()["error_description"] == "Authorization server requires nonce in DPoP proof"
    prover.nonce = answer.headers["dpop-nonce"]
    assert ask(tenant, form, prover.proof("POST", at_token(tenant))).status == 200, "the refusal has used up the code"


def test_a_nonce_is_valid_in_its_minute_and_in_the_next_minute(tenant: Tenant) -> None:
    noon = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
    with time_machine.travel(noon, tick=False) as clock:
        nonce = current_nonce(tenant.pk, "g")
        ages = []
        for _ in range(3):
            ages.append(is_current(nonce, tenant.pk, "g"))
            clock.shift(timedelta(seconds=60))
    assert ages == [True, True, False]


@pytest.mark.parametrize("nonce", ["", "x", "nokey.abc", "é"])
def test_an_unknown_nonce_is_refused_even_if_no_nonce_is_required(tenant: Tenant, prover: Prover, nonce: str) -> None:
    form = form_of(tenant, granted_client(tenant))
    answer = ask(tenant, form, prover.proof("POST", at_token(tenant), nonce=nonce or "."))
    assert answer.json()["error"] == "use_dpop_nonce"


def test_a_nonce_of_another_tenant_or_another_generation_is_refused(tenant: Tenant, prover: Prover) -> None:
    form, generation = form_of(tenant, granted_client(tenant)), replays.used_proofs().generation().name
    for nonce in (current_nonce("other", generation), current_nonce(tenant.pk, "p"), current_nonce(tenant.pk, "")):
        answer = ask(tenant, form, prover.proof("POST", at_token(tenant), nonce=nonce))
        assert answer.json()["error"] == "use_dpop_nonce"
    assert ask(tenant, form, prover.proof("POST", at_token(tenant), nonce=current_nonce(tenant.pk, generation))).status == 200


def test_an_old_nonce_is_refused(tenant: Tenant, prover: Prover) -> None:
    form, generation = form_of(tenant, granted_client(tenant)), replays.used_proofs().generation().name
    with time_machine.travel(datetime.now(UTC) - timedelta(minutes=3)):
        nonce = current_nonce(tenant.pk, generation)
    assert ask(tenant, form, prover.proof("POST", at_token(tenant), nonce=nonce)).json()["error"] == "use_dpop_nonce"


def test_the_service_requires_new_nonces_after_redis_has_lost_its_data(tenant: Tenant, prover: Prover) -> None:
    form, used = form_of(tenant, granted_client(tenant)), replays.used_proofs()
    replayed = prover.proof("POST", at_token(tenant))
    with_nonce = prover.proof("POST", at_token(tenant), nonce=current_nonce(tenant.pk, used.generation().name))
    assert [ask(tenant, form, proof).status for proof in (replayed, with_nonce)] == [200, 200]
    for key in used._redis.scan_iter(f"{used._prefix}*"):
        used._redis.delete(key)
    used._redis.delete(used._name)
    used._known = None
    assert [ask(tenant, form, proof).json()["error"] for proof in (replayed, with_nonce)] == ["use_dpop_nonce"] * 2
    assert proven(tenant, form, prover).status == 200


def test_a_restarted_redis_with_old_records_makes_the_service_require_new_nonces(
    tenant: Tenant, prover: Prover, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, used = form_of(tenant, granted_client(tenant)), replays.used_proofs()
    earlier = used.generation().name
    replayed = prover.proof("POST", at_token(tenant))
    with_nonce = prover.proof("POST", at_token(tenant), nonce=current_nonce(tenant.pk, earlier))
    assert [ask(tenant, form, proof).status for proof in (replayed, with_nonce)] == [200, 200]
    # Redis is now in the state of a promoted replica, or of a server that has loaded an old snapshot: the generation is stored, the
    # records of the latest used proofs are lost, and the Redis server has another run id.
    for key in used._redis.scan_iter(f"{used._prefix}*"):
        used._redis.delete(key)
    monkeypatch.setattr(used, "_runs", {})
    monkeypatch.setattr(used, "_run_of", lambda _connection: "1" * 40)
    assert [ask(tenant, form, proof).json()["error"] for proof in (replayed, with_nonce)] == ["use_dpop_nonce"] * 2
    assert proven(tenant, form, prover).status == 200


# --- Refresh tokens and codes -------------------------------------------------------------------------------------------------


def test_a_refresh_token_of_a_public_client_is_bound_to_its_key(tenant: Tenant, prover: Prover) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"allow_offline_access": True})
    registered = public_client(tenant)
    login = login_of(tenant, registered, some_user(tenant), scope="openid offline_access", audience=API)
    answer = proven(tenant, code_form(registered, code_of(login)), prover)
    token, thief = answer.json()["refresh_token"], Prover()
    assert ask_token(tenant, refresh_form(registered, token)).json()["error"] == "invalid_grant"
    assert proven(tenant, refresh_form(registered, token), thief).json()["error"] == "invalid_grant"
    fresh = proven(tenant, refresh_form(registered, token), prover)
    assert (fresh.status, fresh.json()["token_type"]) == (200, "DPoP")
    assert claims_of(tenant, fresh.json()["access_token"])["cnf"] == {"jkt": prover.thumbprint}


def test_a_confidential_client_may_change_its_key(tenant: Tenant, prover: Prover) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"allow_offline_access": True})
    registered, other = web_client(tenant), Prover()
    login = login_of(tenant, registered, some_user(tenant), scope="openid offline_access", audience=API)
    token = proven(tenant, code_form(registered, code_of(login)), prover).json()["refresh_token"]
    fresh = proven(tenant, refresh_form(registered, token), other)
    assert claims_of(tenant, fresh.json()["access_token"])["cnf"] == {"jkt": other.thumbprint}


def exchange(login: Login, secret: str, code: str) -> dict[str, Any]:
    return code_form(Registered(login.client, secret), code)


def test_a_code_that_names_a_key_is_refused_without_a_proof_of_this_key(tenant: Tenant, prover: Prover) -> None:
    client, secret = signing_client(tenant)
    connection = people(tenant, client)
    login = Login(tenant, client, connection, person(connection), Browser(tenant))
    form = exchange(login, secret, login.log_in(login.ask(dpop_jkt=prover.thumbprint)).answer["code"])
    assert ask_token(tenant, form).json()["error"] == "invalid_grant"
    assert proven(tenant, form, Prover()).json()["error"] == "invalid_grant"
    assert proven(tenant, form, prover).status == 200


def test_a_proof_in_a_pushed_request_binds_the_code(tenant: Tenant, prover: Prover) -> None:
    client, secret = signing_client(tenant)
    connection = people(tenant, client)
    login, pusher = Login(tenant, client, connection, person(connection), Browser(tenant)), Pusher(tenant, client, secret)
    address = f"{host_of(tenant).issuer}oauth/par"
    answer = prover.proven(lambda: pusher.push(headers={"DPoP": prover.proof("POST", address)}))
    assert (answer.status, "dpop-nonce" in answer.headers) == (201, True)
    page = login.browser.get("/authorize", {"client_id": client.client_id, "request_uri": answer.json()["request_uri"]})
    form = exchange(login, secret, login.log_in(page).answer["code"])
    assert proven(tenant, form, Prover()).json()["error"] == "invalid_grant"
    assert proven(tenant, form, prover).status == 200
    for proof, jkt in ((prover.proof("POST", address), Prover().thumbprint), (prover.proof("POST", at_token(tenant)), None)):
        assert pusher.push(headers={"DPoP": proof}, dpop_jkt=jkt).json()["error"] == "invalid_dpop_proof"


# --- Userinfo ------------------------------------------------------------------------------------------------------------------


def test_a_bound_token_reads_the_profile_with_a_proof(tenant: Tenant, prover: Prover) -> None:
    token = bound_token(tenant, prover)
    assert profile(tenant, token, prover.proof("GET", at_profile(tenant), token=token)).status == 200


def test_an_opaque_token_can_be_bound_too(tenant: Tenant, prover: Prover) -> None:
    token = bound_token(tenant, prover)
    assert "." not in token
    assert profile(tenant, token, "", scheme="Bearer").status == 401


@pytest.mark.parametrize("audience", [None, API])
def test_a_stolen_token_is_refused(tenant: Tenant, prover: Prover, audience: str | None) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    registered, thief = web_client(tenant), Prover()
    login = login_of(tenant, registered, some_user(tenant), audience=audience)
    token = str(proven(tenant, code_form(registered, code_of(login)), prover).json()["access_token"])
    address = at_profile(tenant)
    good = prover.proof("GET", address, token=token)
    attempts = {
        "as a bearer token": (profile(tenant, token, "", scheme="Bearer"), "invalid_token"),
        "as a bearer token with a proof": (profile(tenant, token, good, scheme="Bearer"), "invalid_token"),
        "without a proof": (profile(tenant, token, ""), "invalid_dpop_proof"),
        "with another key": (profile(tenant, token, thief.proof("GET", address, token=token)), "invalid_token"),
        "with a proof for another token": (profile(tenant, token, prover.proof("GET", address, token="x")), "invalid_dpop_proof"),
        "with a proof for another method": (profile(tenant, token, prover.proof("POST", address, token=token)), "invalid_dpop_proof"),
        "with a proof of the token endpoint": (profile(tenant, token, prover.proof("POST", at_token(tenant))), "invalid_dpop_proof"),
    }
    for name, (answer, error) in attempts.items():
        assert (answer.status, answer.json()["error"]) == (401, error), name
        assert f'DPoP error="{error}"' in answer.headers["www-authenticate"], name
        assert token not in answer.body.decode() + str(answer.headers)
    assert profile(tenant, token, good).status == 200
    assert profile(tenant, token, good).json()["error_description"] == "The DPoP proof was used before."


def test_a_bound_token_is_refused_in_a_form_and_in_a_url(tenant: Tenant, prover: Prover) -> None:
    token = bound_token(tenant, prover)
    proof = prover.proof("POST", at_profile(tenant), token=token)
    posted = read_profile(tenant, None, method="POST", headers={"Content-Type": FORM, "DPoP": proof}, body=f"access_token={token}".encode())
    assert posted.status == 401
    proof = prover.proof("GET", at_profile(tenant), token=token)
    assert read_profile(tenant, None, headers={"DPoP": proof}, query=f"access_token={token}").status == 401


def test_an_unbound_token_that_is_sent_with_the_dpop_scheme_is_refused(tenant: Tenant, prover: Prover) -> None:
    registered = web_client(tenant)
    form = code_form(registered, code_of(login_of(tenant, registered, some_user(tenant))))
    token = ask_token(tenant, form).json()["access_token"]
    answer = profile(tenant, token, prover.proof("GET", at_profile(tenant), token=token))
    assert (answer.status, answer.json()["error"]) == (401, "invalid_token")
    assert profile(tenant, token, "", scheme="Bearer").status == 200


def test_userinfo_answers_an_old_nonce_with_a_challenge_and_a_new_nonce(tenant: Tenant, prover: Prover) -> None:
    token = bound_token(tenant, prover)
    answer = profile(tenant, token, prover.proof("GET", at_profile(tenant), token=token, nonce="old.one"))
    assert (answer.status, answer.json()["error"]) == (401, "use_dpop_nonce")
    assert 'DPoP error="use_dpop_nonce"' in answer.headers["www-authenticate"]
    prover.nonce = answer.headers["dpop-nonce"]
    assert profile(tenant, token, prover.proof("GET", at_profile(tenant), token=token)).status == 200


# --- Required proofs ----------------------------------------------------------------------------------------------------------


def api_client(tenant: Tenant, **asked: Any) -> tuple[Registered, dict[str, Any]]:
    """Create an API with these settings, and a client with a grant for it. Return the client and the form fields of its token request."""
    resource = create_api_resource(tenant_id=tenant.pk, identifier=API, scopes=[{"value": "read", "description": ""}], settings=asked)
    registered = web_client(tenant, grant_types=["client_credentials", "authorization_code", "implicit"])
    create_client_grant(tenant_id=tenant.pk, client_id=registered.client_id, api_resource=resource, scopes=["read"])
    return registered, form_of(tenant, registered, audience=API)


def test_an_api_can_require_tokens_that_are_bound_to_a_key(tenant: Tenant, prover: Prover) -> None:
    _, form = api_client(tenant, proof_of_possession={"mechanism": "dpop", "required": True})
    refused = ask_token(tenant, form)
    assert (refused.status, refused.json()["error"]) == (400, "invalid_request")
    assert "DPoP proof" in refused.json()["error_description"]
    assert ask_token(tenant, form, headers=forwarded(edge_key(tenant), certificate())).status == 400
    assert proven(tenant, form, prover).status == 200


def test_an_api_can_require_tokens_that_are_bound_to_a_certificate(tenant: Tenant, prover: Prover) -> None:
    _, form = api_client(tenant, proof_of_possession={"mechanism": "mtls", "required": True, "required_for": "all_clients"})
    assert ask_token(tenant, form).status == 400
    assert proven(tenant, form, prover).json()["error"] == "invalid_request"
    answer = ask_token(tenant, form, headers=forwarded(edge_key(tenant), certificate()))
    assert (answer.status, answer.json()["token_type"]) == (200, "Bearer")


@pytest.mark.parametrize("asked", [{"required": False}, {"required": True, "required_for": "public_clients"}])
def test_an_api_can_require_proofs_from_public_clients_only_or_from_no_client(tenant: Tenant, asked: dict[str, Any]) -> None:
    _, form = api_client(tenant, proof_of_possession={"mechanism": "dpop", **asked})
    assert ask_token(tenant, form).status == 200
    registered = public_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant), audience=API))
    assert ask_token(tenant, code_form(registered, code)).status == (400 if asked["required"] else 200)


def test_a_client_setting_can_require_bound_tokens(tenant: Tenant, prover: Prover) -> None:
    registered, form = api_client(tenant)
    update_client(tenant_id=tenant.pk, client_id=registered.client_id, changes={"settings": {"require_proof_of_possession": True}})
    forget_all()
    assert ask_token(tenant, form).json()["error"] == "invalid_request"
    assert proven(tenant, form, prover).status == 200
    assert ask_token(tenant, form, headers=forwarded(edge_key(tenant), certificate())).status == 200


def test_a_changed_setting_of_an_api_applies_immediately_to_refreshes(tenant: Tenant, prover: Prover) -> None:
    resource = create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"allow_offline_access": True})
    registered = web_client(tenant)
    login = login_of(tenant, registered, some_user(tenant), scope="openid offline_access", audience=API)
    token = ask_token(tenant, code_form(registered, code_of(login))).json()["refresh_token"]
    changes = {"settings": {"proof_of_possession": {"mechanism": "dpop", "required": True}}}
    update_api_resource(tenant_id=tenant.pk, resource_id=resource.pk, changes=changes)
    forget_all()
    refused = ask_token(tenant, refresh_form(registered, token))
    assert (refused.status, refused.json()["error"]) == (400, "invalid_request")
    assert proven(tenant, refresh_form(registered, token), prover).status == 200


def test_a_browser_gets_no_token_for_an_api_that_requires_bound_tokens(tenant: Tenant) -> None:
    client, _ = signing_client(tenant, grant_types=["authorization_code", "implicit"])
    create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"proof_of_possession": {"mechanism": "dpop", "required": True}})
    connection = people(tenant, client)
    login = Login(tenant, client, connection, person(connection), Browser(tenant))
    answer = login.log_in(login.ask(response_type="token", audience=API)).answer
    assert (answer["error"], "access_token" in answer) == ("invalid_request", False)
