"""FAPI 2.0: all parameters are pushed. A request URI is valid only once, only for its client, and only for a short time."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime, timedelta

import time_machine

from authapi.services.clients import update_client
from tests.authapi.browser import Page
from tests.authapi.memory import forget_all
from tests.conformance.openid.bank import Bank, new_bank, refusal
from tests.conformance.openid.plans import BankVariant
from tests.conformance.openid.provider import Provider
from tests.conformance.openid.relying_party import CALLBACK


def is_on_a_page(page: Page, error: str) -> bool:
    """Report whether a page names the error and does not redirect the browser."""
    return page.status == 400 and "location" not in page.headers and error in page.text


def refused_error(bank: Bank, page: Page) -> str:
    """Return the error in the response to the client."""
    return bank.answer(page)["error"]


def test_fapi2_security_profile_final_happy_flow(bank: Bank, provider: Provider, variant: BankVariant) -> None:
    tokens = bank.logged_in()
    assert bank.resource(tokens["access_token"]).status == 200
    other = new_bank(provider, variant, key="second")
    assert other.logged_in()["access_token"] != tokens["access_token"]
    # The token of the first client is not valid with the key or certificate of the second client.
    assert other.resource(tokens["access_token"]).status == 401


def test_fapi2_security_profile_final_user_rejects_authentication(bank: Bank) -> None:
    update_client(tenant_id=bank.provider.tenant.pk, client_id=bank.client_id, changes={"is_first_party": False})
    forget_all()
    page = bank.log_in(bank.visit(bank.handle()))
    question = bank.browser.follow(page)
    assert 'value="allow"' in question.text
    assert refused_error(bank, bank.browser.submit(question, answer="deny")) == "access_denied"


def test_fapi2_security_profile_final_ensure_authorization_request_without_state_success(bank: Bank) -> None:
    # `answer` compares the state, which is absent in the request and in the response.
    assert bank.logged_in(state=None)["access_token"]


def test_fapi2_security_profile_final_ensure_authorization_request_without_nonce_success(bank: Bank) -> None:
    assert "nonce" not in bank.verified(bank.logged_in(nonce=None)["id_token"])


def test_fapi2_security_profile_final_ensure_authorization_request_with_64_char_nonce_success(bank: Bank) -> None:
    assert len(bank.verified(bank.logged_in(nonce=secrets.token_hex(32))["id_token"])["nonce"]) == 64


def test_fapi2_security_profile_final_ensure_authorization_request_with_long_nonce(bank: Bank) -> None:
    """A provider may refuse a nonce of 384 characters, but must then answer with an error."""
    assert refusal(bank.push(nonce="n" * 384)) == "invalid_request"
    assert bank.logged_in(nonce="n" * 255)["access_token"]


def test_fapi2_security_profile_final_ensure_authorization_request_with_long_state(bank: Bank) -> None:
    assert bank.logged_in(state="s" * 384)["access_token"]


def test_fapi2_security_profile_final_ensure_other_scope_order_succeeds(bank: Bank) -> None:
    assert bank.logged_in(scope="email openid")["access_token"]


def test_fapi2_security_profile_final_ensure_different_nonce_inside_and_outside_request_object(bank: Bank) -> None:
    page = bank.log_in(bank.visit(bank.handle(), nonce="outside"))
    # `verified` compares the nonce with the pushed nonce.
    assert bank.tokens(bank.exchange(bank.answer(page)["code"]))["id_token"]


def test_fapi2_security_profile_final_ensure_different_state_inside_and_outside_request_object(bank: Bank) -> None:
    assert bank.answer(bank.log_in(bank.visit(bank.handle(), state="outside")))["code"]


def test_fapi2_security_profile_final_state_only_outside_request_object_not_used(bank: Bank) -> None:
    answer = bank.answer(bank.log_in(bank.visit(bank.handle(state=None), state="outside")))
    assert "state" not in answer
    tokens = bank.tokens(bank.exchange(answer["code"]))
    assert "s_hash" not in bank.verified(tokens["id_token"])


def test_fapi2_security_profile_final_ensure_request_object_without_redirect_uri_fails(bank: Bank) -> None:
    assert refusal(bank.push(redirect_uri=None)) in ("invalid_request", "invalid_request_object")


def test_fapi2_security_profile_final_ensure_redirect_uri_in_authorization_request(bank: Bank) -> None:
    assert refusal(bank.push(redirect_uri=None, scope="email openid")) in ("invalid_request", "invalid_request_object")


def test_fapi2_security_profile_final_ensure_registered_redirect_uri(bank: Bank) -> None:
    assert refusal(bank.push(redirect_uri=f"{CALLBACK}/elsewhere")) in ("invalid_request", "invalid_redirect_uri")


def test_fapi2_security_profile_final_plain_fapi_tolerate_unregistered_redirect_uri(bank: Bank) -> None:
    """A provider may accept an unregistered URI from an authenticated client (FAPI 2.0, 5.3.2.2). This provider refuses it."""
    assert refusal(bank.push(redirect_uri="https://unregistered.example.test/callback")) in ("invalid_request", "invalid_redirect_uri")


def test_fapi2_security_profile_final_ensure_unsigned_authorization_request_without_using_par_fails(bank: Bank) -> None:
    page = bank.browser.get("/authorize", {"client_id": bank.client_id, **bank.request()})
    assert refused_error(bank, page) == "invalid_request"


def test_fapi2_security_profile_final_ensure_response_type_code_idtoken_fails(bank: Bank) -> None:
    errors = ("unsupported_response_type", "unauthorized_client", "invalid_request")
    assert refusal(bank.push(response_type="code id_token")) in errors


def test_fapi2_security_profile_final_ensure_response_type_token_fails(bank: Bank) -> None:
    assert refusal(bank.push(response_type="token")) in ("unsupported_response_type", "unauthorized_client", "invalid_request")


def test_fapi2_security_profile_final_test_claims_parameter_identity_claims(bank: Bank) -> None:
    wanted = ("name", "given_name", "family_name", "email", "phone_number")
    claims = {place: dict.fromkeys(wanted) for place in ("id_token", "userinfo")}
    # A signed request contains the object itself (RFC 9101, 4); a form contains its JSON text.
    tokens = bank.logged_in(claims=claims if bank.variant.is_signed else json.dumps(claims))
    told = json.loads(bank.resource(tokens["access_token"]).body)
    assert set(wanted) <= told.keys()
    assert set(wanted) <= bank.verified(tokens["id_token"]).keys()


# --- Pushed requests ------------------------------------------------------------------------------------------------------------


def test_fapi2_security_profile_final_par_ensure_reused_request_uri_prior_to_auth_completion_succeeds(bank: Bank) -> None:
    handle = bank.handle()
    first = bank.visit(handle)
    assert bank.browser.follow(first).status == 200
    assert bank.answer(bank.log_in(bank.visit(handle)))["code"]


def test_fapi2_security_profile_final_par_attempt_reuse_request_uri(bank: Bank) -> None:
    handle = bank.handle()
    assert bank.answer(bank.log_in(bank.visit(handle)))["code"]
    assert is_on_a_page(bank.visit(handle), "invalid_request_uri")


def test_fapi2_security_profile_final_par_attempt_to_use_expired_request_uri(bank: Bank) -> None:
    with time_machine.travel(datetime.now(UTC)) as clock:
        handle = bank.handle()
        clock.shift(timedelta(seconds=600))
        assert is_on_a_page(bank.visit(handle), "invalid_request_uri")


def test_fapi2_security_profile_final_par_attempt_to_use_request_uri_for_different_client(
    bank: Bank, provider: Provider, variant: BankVariant
) -> None:
    other = new_bank(provider, variant, key="second")
    assert is_on_a_page(other.visit(bank.handle()), "invalid_request_uri")


def test_fapi2_security_profile_final_par_authorization_request_containing_request_uri_form_param(bank: Bank) -> None:
    handle = bank.handle()
    assert refusal(bank.push(beside={"request_uri": handle})) == "invalid_request"


def test_fapi2_security_profile_final_par_attempt_invalid_http_method(bank: Bank) -> None:
    page = bank.provider.ask("PUT", bank.address("pushed_authorization_request_endpoint"))
    assert page.status == 405


def test_fapi2_security_profile_final_par_without_duplicate_parameters(bank: Bank) -> None:
    # `visit` sends only the two parameters of RFC 9126, 4.
    assert bank.logged_in()["access_token"]


def test_fapi2_security_profile_final_par_ensure_pkce_required(bank: Bank) -> None:
    assert refusal(bank.push(code_challenge=None, code_challenge_method=None)) == "invalid_request"


def test_fapi2_security_profile_final_par_plain_pkce_rejected(bank: Bank) -> None:
    assert refusal(bank.push(code_challenge="x" * 43, code_challenge_method="plain")) == "invalid_request"
    assert refusal(bank.push(code_challenge="x" * 43, code_challenge_method=None)) == "invalid_request"
