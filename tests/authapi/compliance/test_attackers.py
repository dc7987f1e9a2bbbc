"""The attackers of the FAPI 2.0 Attacker Model against a bank's client. Each test shows that an attacker cannot use what the attacker has
read, and that forged requests are refused."""

from __future__ import annotations

import re

import pytest

from authapi.protocols.oauth.pushed import PREFIX
from authapi.services.clients import update_client
from identity.models import Tenant
from tests.authapi.asgi_client import ask_token
from tests.authapi.browser import Browser
from tests.authapi.certificates import SUBJECT, certificate, forwarded
from tests.authapi.compliance.bank import Bank, bank_of
from tests.authapi.memory import forget_all
from tests.authapi.proving import Prover, settle_memory
from tests.factories.authapi import host_of
from tests.factories.logins import VERIFIER, challenge_of, code_form, web_client
from tests.factories.sign_in import CALLBACK

OTHER_VERIFIER = "another-verifier-that-the-client-has-made-for-a-session"


@pytest.fixture
def bank(tenant: Tenant) -> Bank:
    return bank_of(tenant, "fapi2_sp_pkj_mtls")


def thief_headers(bank: Bank) -> dict[str, str]:
    """Return the headers of a certificate with the subject of the client's certificate, and with another key."""
    return forwarded(bank.edge, certificate("thief", subject=SUBJECT))


# --- A1: a page of the attacker in the user's browser ---------------------------------------------------------------------------


def test_a_code_of_the_attacker_is_refused_in_the_session_of_the_user(bank: Bank) -> None:
    # The client has the verifier of the user's session. An attacking page sends the attacker's code to the client (CSRF, code injection).
    answer = bank.exchange(bank.log_in(code_challenge=challenge_of(OTHER_VERIFIER)).answer["code"], code_verifier=VERIFIER)
    assert (answer.status, answer.json()["error"]) == (400, "invalid_grant")


def test_parameters_besides_a_handle_are_ignored(bank: Bank) -> None:
    handle = bank.push().json()["request_uri"]
    page = bank.authorize(
        request_uri=handle, redirect_uri="https://evil.test/", state="evil", scope="openid email", code_challenge="x" * 43
    )
    answer = bank.login.log_in(page)
    assert answer.location.startswith(f"{CALLBACK}?")
    assert answer.answer["state"] == "the-state"
    assert bank.exchange(answer.answer["code"]).status == 200


def test_a_handle_of_another_client_starts_no_login(bank: Bank) -> None:
    other = web_client(bank.tenant)
    handle = bank.push().json()["request_uri"]
    page = bank.login.browser.get("/authorize", {"client_id": other.client_id, "request_uri": handle})
    assert (page.status, "location" in page.headers) == (400, False)


# --- A1a: an authorization server of the attacker (mix-up) ----------------------------------------------------------------------


def test_every_authorization_response_contains_the_issuer(bank: Bank) -> None:
    assert bank.log_in().answer["iss"] == bank.issuer
    refused = bank.log_in(prompt="none", max_age="0")
    assert (refused.answer["error"], refused.answer["iss"]) == ("login_required", bank.issuer)


# --- A3a: the attacker reads the authorization request --------------------------------------------------------------------------


def test_the_browser_sends_only_an_opaque_handle_that_is_accepted_once(bank: Bank) -> None:
    handle = bank.push().json()["request_uri"]
    assert re.fullmatch(re.escape(PREFIX) + r"[A-Za-z0-9_-]{43}", handle)
    bank.login.log_in(bank.authorize(request_uri=handle))
    # The attacker's browser uses the handle again.
    page = Browser(bank.tenant).get("/authorize", {"client_id": bank.client.client_id, "request_uri": handle})
    assert (page.status, "location" in page.headers) == (400, False)


# --- The attacker reads the authorization response ------------------------------------------------------------------------------


def test_a_code_is_refused_without_the_key_of_its_client(bank: Bank) -> None:
    code = bank.log_in().answer["code"]
    other = web_client(bank.tenant)
    # The attacker sends the code as another client, and then as the bank's client with a certificate of another key.
    assert ask_token(bank.tenant, code_form(other, code, code_verifier=VERIFIER)).status == 403
    sent = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    unproven = {"client_id": bank.client.client_id, **sent}
    assert ask_token(bank.tenant, unproven, headers=thief_headers(bank)).json()["error"] == "invalid_client"
    assert bank.exchange(code).status == 200


# --- A5: the client uses a token endpoint of the attacker -----------------------------------------------------------------------


def test_an_assertion_for_another_endpoint_is_refused(bank: Bank) -> None:
    code = bank.log_in().answer["code"]
    sent = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    for audience in ("https://evil.test/", f"{bank.issuer}oauth/token", [bank.issuer, "https://evil.test/"], [bank.issuer]):
        answer = ask_token(bank.tenant, bank.form(bank.assertion(aud=audience), **sent), headers=bank.tls)
        assert (answer.status, answer.json()["error"]) == (401, "invalid_client"), audience


def test_an_assertion_that_an_attacker_has_read_is_accepted_only_once(bank: Bank) -> None:
    assertion = bank.assertion()
    assert bank.push(assertion=assertion).status == 201
    assert bank.push(assertion=assertion).json()["error"] == "invalid_client"


# --- A7, A8: the attacker reads a request to an API -----------------------------------------------------------------------------


def test_a_stolen_token_is_refused_without_the_certificate(bank: Bank) -> None:
    token = bank.tokens()["access_token"]
    assert bank.profile(token).status == 200
    assert bank.profile(token, headers=thief_headers(bank)).status == 401
    without = {"client-certificate": "", "cname-api-key": "", "client-certificate-ca-verified": ""}
    assert bank.profile(token, headers=without).status == 401


def test_a_stolen_token_is_refused_without_the_key(bank: Bank) -> None:
    settle_memory()
    prover, thief = Prover(), Prover()
    code = bank.log_in(dpop_jkt=prover.thumbprint).answer["code"]
    at = f"{host_of(bank.tenant).issuer}oauth/token"
    assert bank.exchange(code, headers={"DPoP": thief.proof("POST", at)}).json()["error"] == "invalid_grant"
    members = bank.exchange(code, headers={"DPoP": prover.proof("POST", at)}).json()
    assert members["token_type"] == "DPoP"
    token, profile = members["access_token"], f"{host_of(bank.tenant).issuer}userinfo"
    for key, status in ((thief, 401), (prover, 200)):
        headers = {"Authorization": f"DPoP {token}", "DPoP": key.proof("GET", profile, token=token)}
        assert bank.profile(None, headers=headers).status == status


def test_a_stolen_refresh_token_is_refused_without_the_authentication_of_the_client(bank: Bank) -> None:
    refresh = bank.tokens(scope="openid offline_access")["refresh_token"]
    sent = {"grant_type": "refresh_token", "refresh_token": refresh}
    unproven = ask_token(bank.tenant, {"client_id": bank.client.client_id, **sent}, headers=bank.tls)
    assert unproven.json()["error"] == "invalid_client"
    other = web_client(bank.tenant)
    assert ask_token(bank.tenant, {"client_id": other.client_id, "client_secret": other.secret, **sent}).status == 403


# --- Bypassing the level --------------------------------------------------------------------------------------------------------


def test_tokens_issued_before_a_level_was_set_cannot_bypass_it(tenant: Tenant) -> None:
    bank = bank_of(tenant, "fapi2_sp_pkj_mtls")
    bank.set(settings={"compliance_level": None})
    token = bank.exchange(bank.log_in().answer["code"], has_certificate=False).json()["access_token"]
    assert bank.profile(token).status == 200
    update_client(tenant_id=tenant.pk, client_id=bank.client.client_id, changes={"settings": {"compliance_level": bank.level}})
    forget_all()
    assert bank.profile(token).status == 401
