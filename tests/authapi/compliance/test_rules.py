"""Each rule of the compliance levels, with a request that breaks it. The rule refuses the request. If a test removes the rule, the request
succeeds, or another check refuses it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from authapi.compliance import rules
from authapi.compliance.levels import LEVELS, NONE
from authapi.compliance.rules import Rule, Stage
from authapi.models import AuthorizationCode, ClientCredential
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.tenant_settings import update_tenant_settings
from authapi.tokens.signing import half_hash
from identity.models import Tenant
from tests.authapi.asgi_client import FORM, ask_token, post
from tests.authapi.compliance.bank import Bank, bank_of, request_key, told
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.proving import Prover, settle_memory
from tests.factories.sign_in import CALLBACK

API = "https://accounts.bank.example.test"
INTERACTION = "93bac548-d2de-4546-b106-880a5018460d"
NAMES = {name: rule for name, rule in vars(rules).items() if isinstance(rule, Rule)}


def secret(bank: Bank) -> str:
    bank.use_secret()
    return told(bank.push())


def odd_key(bank: Bank) -> str:
    ClientCredential.objects.of(bank.tenant.pk).filter(pk__in=bank.client.proof_ids).update(algorithm="RS256")
    forget_all()
    return told(bank.push(assertion=bank.assertion(algorithm="RS256")))


def changed(**columns: Any) -> Callable[[Bank], str]:
    """Return a function that changes the row of the client and then pushes a valid request."""

    def act(bank: Bank) -> str:
        bank.set(**columns)
        return told(bank.push())

    return act


def pushed(**changes: Any) -> Callable[[Bank], str]:
    return lambda bank: told(bank.push(**changes))


def signed_otherwise(bank: Bank) -> str:
    if len(bank.client.request_key_ids) == 1:
        further = request_key(bank.client, key="third", algorithm="RS256")
        named = [{"id": pk} for pk in (*bank.client.request_key_ids, further.pk)]
        bank.set(settings={"signed_request_object": {"credentials": named}})
    return told(bank.push(signed={"key": "third", "algorithm": "RS256"}))


def without_certificate(bank: Bank) -> str:
    return told(bank.exchange(bank.log_in().answer["code"], has_certificate=False))


def odd_key_proof(bank: Bank) -> str:
    settle_memory()
    proof = Prover("ES384").proof("POST", f"{bank.issuer}oauth/par")
    return told(post("/oauth/par", bank.tenant, bank.form(**bank.request()), headers={**bank.tls, "DPoP": proof}))


def token_for_odd_api(bank: Bank) -> str:
    if not bank.client.client_grants.exists():
        api = create_api_resource(tenant_id=bank.tenant.pk, identifier=API, settings={"signing_alg": "RS256"})
        create_client_grant(tenant_id=bank.tenant.pk, client_id=bank.client.client_id, api_resource=api, scopes=[])
    return told(ask_token(bank.tenant, bank.form(grant_type="client_credentials", audience=API), headers=bank.tls))


def token_in_form(bank: Bank) -> str:
    body = f"access_token={bank.tokens()['access_token']}".encode()
    return told(bank.profile(None, method="POST", headers={"Content-Type": FORM}, body=body))


# For each rule, a function that makes a client break the rule. The level of the client is the first of the `LEVELS` with this rule. The
# function returns the error text, or "" if the request succeeds.
ACTS: dict[str, Callable[[Bank], str]] = {
    "PRIVATE_KEY_JWT": secret,
    "MUTUAL_TLS": secret,
    "PS256_KEYS": odd_key,
    "PS256_ID_TOKENS": changed(algorithm="RS256"),
    "CONFORMANT": changed(settings={"oidc_conformant": False}),
    "EXACT_CALLBACKS": changed(redirect_uris=f"{CALLBACK} https://*.example.test/back"),
    "HTTPS_CALLBACKS": changed(redirect_uris=f"{CALLBACK} http://app.example.test/back"),
    "NO_TYPED_GRANTS": changed(grant_types=["authorization_code", "implicit", "password"]),
    "NO_CIBA_GRANT": changed(grant_types=["authorization_code", "implicit", "urn:openid:params:grant-type:ciba"]),
    "NO_DEVICE_GRANT": changed(grant_types=["authorization_code", "implicit", "urn:ietf:params:oauth:grant-type:device_code"]),
    "NO_IMPLICIT_GRANT": changed(grant_types=["authorization_code", "implicit"]),
    "HYBRID_GRANTS": changed(grant_types=["authorization_code"]),
    "REQUEST_KEYS": changed(settings={"signed_request_object": None}),
    "SHORT_PUSHES": changed(settings={"par_request_expiry": 600}),
    "NO_ROTATION": changed(settings={"refresh_token": {"rotation_type": "rotating"}}),
    "ASSERTION_FOR_ISSUER": lambda bank: told(bank.push(assertion=bank.assertion(aud=[bank.issuer]))),
    "KEY_PROOF_ALGORITHMS": odd_key_proof,
    "PUSHED": lambda bank: told(bank.authorize(request=bank.request_object(bank.request(prompt="none", state=None)))),
    "SIGNED": pushed(is_signed=False),
    "CODE": pushed(response_type="code id_token"),
    "CODE_ID_TOKEN": pushed(response_type="code"),
    "REDIRECT_URI": pushed(redirect_uri=None),
    "PKCE_S256": pushed(code_challenge=None, code_challenge_method=None),
    "PS256_REQUESTS": signed_otherwise,
    "RECENT_REQUESTS": pushed(signed={"nbf": None}),
    "SHORT_REQUESTS": lambda bank: told(bank.push(signed={"exp": int(time.time()) + 3700})),
    "BOUND_TO_CERTIFICATE": without_certificate,
    "BOUND": without_certificate,
    "PS256_ACCESS_TOKENS": token_for_odd_api,
    "TOKEN_IN_HEADER": token_in_form,
}
# Rules whose request is refused even after the rule is removed, because another check refuses it. The value is the text of that refusal.
REFUSED_OTHERWISE = {
    "HYBRID_GRANTS": "not allowed for the client",
    "REQUEST_KEYS": "a registered key",
    "CODE": "not allowed for the client",
    "PUSHED": "Login required",
}


def sends_issuer(bank: Bank) -> bool:
    update_tenant_settings(tenant_id=bank.tenant.pk, changes={"authorization_response_iss_parameter_supported": False})
    forget_all()
    return bool(bank.log_in().answer.get("iss") == bank.issuer)


def ends_codes_soon(bank: Bank) -> bool:
    bank.log_in()
    code = AuthorizationCode.objects.of(bank.tenant.pk).latest("pk")
    return bool((code.expires - code.created).total_seconds() < 61)


def hashes_state(bank: Bank) -> bool:
    token = bank.log_in().answer["id_token"]
    return bool(decoded(token)[1].get("s_hash") == half_hash("the-state", "PS256"))


def keeps_the_profile_from_the_browser(bank: Bank) -> bool:
    answer = bank.log_in().answer
    assert "name" in decoded(bank.exchange(answer["code"]).json()["id_token"])[1]
    return "name" not in decoded(answer["id_token"])[1]


def writes_numbers(bank: Bank) -> bool:
    bank.set(settings={"updated_at_as_text": True})
    members = bank.tokens()
    told_there = [bank.profile(members["access_token"]).json(), decoded(members["id_token"])[1]]
    kinds = {type(claims["updated_at"]) for claims in told_there}
    assert len(kinds) == 1
    return kinds == {int}


def refuses_as_standard(bank: Bank) -> bool:
    answer = bank.exchange("no-code")
    return (answer.status, answer.json()["error"]) == (400, "invalid_grant")


def repeats_interactions(bank: Bank) -> bool:
    sent = {"x-fapi-interaction-id": INTERACTION}
    code = bank.log_in().answer["code"]
    exchanged = bank.exchange(code, headers=sent)
    answers = [exchanged, bank.profile(exchanged.json()["access_token"], headers=sent), bank.exchange("no-code", headers=sent)]
    answers.append(post("/oauth/revoke", bank.tenant, bank.form(token="x"), headers={**bank.tls, **sent}))
    found = {answer.headers.get("x-fapi-interaction-id") for answer in answers}
    assert len(found) == 1
    return found == {INTERACTION}


def shuts_old_endpoints(bank: Bank) -> bool:
    form = {"client_id": bank.client.client_id, "grant_type": "password", "connection": "people", "username": "x", "password": "x"}
    return "has a compliance level" in bank.login.browser.post("/oauth/ro", form).text


SERVICES: dict[str, Callable[[Bank], bool]] = {
    "ISSUER_IN_ANSWER": sends_issuer,
    "SHORT_CODES": ends_codes_soon,
    "STATE_HASH": hashes_state,
    "NO_PROFILE_IN_BROWSER": keeps_the_profile_from_the_browser,
    "NUMERIC_TIMES": writes_numbers,
    "STANDARD_ERRORS": refuses_as_standard,
    "INTERACTION_IDS": repeats_interactions,
    "NO_OLD_ENDPOINTS": shuts_old_endpoints,
}


def first_level_with(rule: Rule) -> str:
    return next(level for level in LEVELS if level != NONE and rule in LEVELS[level])


def without_row(monkeypatch: pytest.MonkeyPatch, level: str, rule: Rule) -> None:
    monkeypatch.setitem(LEVELS, level, tuple(row for row in LEVELS[level] if row is not rule))
    forget_all()


@pytest.mark.parametrize("name", ACTS)
def test_a_request_that_breaks_a_rule_is_refused_only_because_of_that_rule(
    tenant: Tenant, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule, act = NAMES[name], ACTS[name]
    bank = bank_of(tenant, first_level_with(rule))
    assert rule.sentence in act(bank)
    without_row(monkeypatch, bank.level, rule)
    assert act(bank) == "" if name not in REFUSED_OTHERWISE else REFUSED_OTHERWISE[name] in act(bank)


@pytest.mark.parametrize("name", SERVICES)
def test_the_service_itself_follows_a_rule_only_for_clients_whose_level_has_the_rule(
    tenant: Tenant, name: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.AUTHORIZATION_CODE_SECONDS = 300
    rule, serves = NAMES[name], SERVICES[name]
    bank = bank_of(tenant, first_level_with(rule))
    assert serves(bank)
    without_row(monkeypatch, bank.level, rule)
    assert not serves(bank)


def test_every_rule_has_a_test_request_and_a_level() -> None:
    assert {name for name, rule in NAMES.items() if rule.stage is not Stage.SERVICE} == ACTS.keys()
    assert {name for name, rule in NAMES.items() if rule.stage is Stage.SERVICE} == SERVICES.keys()
    assert set(NAMES.values()) == {rule for row in LEVELS.values() for rule in row}
    assert len({rule.sentence for rule in NAMES.values()}) == len(NAMES)


# The differences between the levels, copied by hand from section 3.3 of the contract.
DIFFERENCES = {
    "fapi1_adv_pkj_par": {"PRIVATE_KEY_JWT", "PS256_KEYS", "SIGNED", "CODE_ID_TOKEN", "BOUND_TO_CERTIFICATE", "STATE_HASH"},
    "fapi1_adv_mtls_par": {"MUTUAL_TLS", "SIGNED", "CODE_ID_TOKEN", "BOUND_TO_CERTIFICATE", "STATE_HASH"},
    "fapi2_sp_pkj_mtls": {"PRIVATE_KEY_JWT", "PS256_KEYS", "ASSERTION_FOR_ISSUER", "CODE", "BOUND", "ISSUER_IN_ANSWER"},
    "fapi2_sp_mtls_mtls": {"MUTUAL_TLS", "CODE", "BOUND_TO_CERTIFICATE", "ISSUER_IN_ANSWER"},
}


@pytest.mark.parametrize("level", DIFFERENCES)
def test_a_level_has_the_rules_of_the_contract(level: str) -> None:
    looked_at = set().union(*DIFFERENCES.values())
    assert {name for name in looked_at if NAMES[name] in LEVELS[level]} == DIFFERENCES[level]
    everywhere = {
        "PUSHED",
        "PKCE_S256",
        "REDIRECT_URI",
        "PS256_ID_TOKENS",
        "SHORT_PUSHES",
        "SHORT_CODES",
        "TOKEN_IN_HEADER",
        "NUMERIC_TIMES",
    }
    assert all(NAMES[name] in LEVELS[level] for name in everywhere)


@pytest.mark.parametrize("level", DIFFERENCES)
def test_a_client_that_follows_every_rule_is_served(tenant: Tenant, level: str) -> None:
    bank = bank_of(tenant, level)
    members = bank.tokens(scope="openid profile offline_access")
    assert members["token_type"] == "Bearer"
    assert decoded(members["id_token"])[0]["alg"] == "PS256"
    assert bank.profile(members["access_token"]).status == 200
    refreshed = ask_token(bank.tenant, bank.form(grant_type="refresh_token", refresh_token=members["refresh_token"]), headers=bank.tls)
    assert refreshed.status == 200, refreshed.body


def test_a_level_unknown_to_this_release_has_every_rule(tenant: Tenant) -> None:
    bank = bank_of(tenant, "fapi2_sp_pkj_mtls")
    bank.set(settings={"compliance_level": "fapi9"})
    assert bank.push().status in (400, 401)


def test_a_request_object_that_became_valid_over_an_hour_ago_is_refused(tenant: Tenant) -> None:
    bank, now = bank_of(tenant, "fapi1_adv_mtls_par"), int(time.time())
    assert rules.RECENT_REQUESTS.sentence in told(bank.push(signed={"nbf": now - 3605, "exp": now + 60}))
    assert bank.push(signed={"nbf": now - 3500, "exp": now + 60}).status == 201
