"""Standard answers (`oauth_standard_errors`): each refusal that differs from the default refusal, with and without the setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from authapi.failures import Case
from authapi.failures.ciba import CibaCase
from authapi.failures.device import DeviceCase
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.passwordless import PasswordlessCase
from authapi.failures.standard import AUTHORIZATION_CODES, STANDARD_CODES, standard_failure, standard_redirect
from authapi.models import Client
from identity.models import Tenant
from identity.services.users import block_user
from tests.authapi.asgi_client import Received, ask_revocation, ask_token, post
from tests.authapi.login.conftest import Login, set_client
from tests.authapi.login.conftest import login as login
from tests.authapi.memory import forget_all
from tests.authapi.protocols.device.conftest import television
from tests.authapi.token_forms import basic
from tests.factories.authapi import Registered
from tests.factories.logins import VERIFIER, challenge_of, code_form, code_of, login_of, public_client, refresh_form, some_user, web_client

# Sources: RFC 6749, 5.2; RFC 7009, 2.2.1; RFC 8707, 2; RFC 9126, 2.3; RFC 9101, 6.2; RFC 9449, 12.2; RFC 9396, 5; RFC 8628, 3.5; CIBA 13.
TOKEN_CODES = {
    "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
    "unsupported_token_type", "invalid_target", "invalid_request_object", "invalid_request_uri", "invalid_dpop_proof", "use_dpop_nonce",
    "authorization_pending", "slow_down", "access_denied", "expired_token", "invalid_authorization_details", "unsupported_response_type",
    "request_not_supported", "request_uri_not_supported", "registration_not_supported", "server_error", "temporarily_unavailable",
    "unknown_user_id", "invalid_binding_message",
}  # fmt: skip
# These cases do not occur at the token endpoint: only `/userinfo` and legacy pages use them.
ELSEWHERE = {OAuthCase.INVALID_BEARER, OAuthCase.BEARER_LACKS_SCOPE}


def wrong_secret(tenant: Tenant, at: Registered) -> Received:
    return ask_token(tenant, code_form(at, "x", client_secret="wrong"))


def bad_code(tenant: Tenant, at: Registered) -> Received:
    return ask_token(tenant, code_form(at, "x"))


def wrong_verifier(tenant: Tenant, at: Registered) -> Received:
    code = code_of(login_of(tenant, at, some_user(tenant)), challenge=challenge_of("v" * 43))
    return ask_token(tenant, code_form(at, code, code_verifier=VERIFIER))


def wrong_address(tenant: Tenant, at: Registered) -> Received:
    code = code_of(login_of(tenant, at, some_user(tenant)))
    return ask_token(tenant, code_form(at, code, redirect_uri="https://other.example.test/"))


def bad_refresh_token(tenant: Tenant, at: Registered) -> Received:
    return ask_token(tenant, refresh_form(at, "x"))


def blocked_user(tenant: Tenant, at: Registered) -> Received:
    user = some_user(tenant)
    code = code_of(login_of(tenant, at, user))
    block_user(tenant_id=tenant.pk, user_id=user.user_id)
    return ask_token(tenant, code_form(at, code))


def other_grant(tenant: Tenant, at: Registered) -> Received:
    return ask_token(tenant, code_form(at, "x", grant_type="client_credentials"))


def unknown_api(tenant: Tenant, at: Registered) -> Received:
    Client.objects.of(tenant.pk).filter(pk=at.client.pk).update(grant_types=["client_credentials"])
    forget_all()
    return ask_token(tenant, code_form(at, "x", grant_type="client_credentials", audience="urn:none"))


def no_api(tenant: Tenant, at: Registered) -> Received:
    Client.objects.of(tenant.pk).filter(pk=at.client.pk).update(grant_types=["client_credentials"])
    forget_all()
    return ask_token(tenant, code_form(at, "x", grant_type="client_credentials"))


def odd_push(tenant: Tenant, at: Registered) -> Received:
    return post("/oauth/par", tenant, {**code_form(at, "x"), "response_type": "token", "scope": "openid"})


ANSWERS: list[tuple[Callable[[Tenant, Registered], Received], tuple[int, str], tuple[int, str]]] = [
    (wrong_secret, (401, "access_denied"), (401, "invalid_client")),
    (bad_code, (403, "invalid_grant"), (400, "invalid_grant")),
    (wrong_verifier, (403, "invalid_grant"), (400, "invalid_grant")),
    (wrong_address, (403, "invalid_grant"), (400, "invalid_grant")),
    (bad_refresh_token, (403, "invalid_grant"), (400, "invalid_grant")),
    (blocked_user, (403, "unauthorized"), (400, "invalid_grant")),
    (other_grant, (403, "unauthorized_client"), (400, "unauthorized_client")),
    (unknown_api, (403, "access_denied"), (400, "invalid_target")),
    (no_api, (403, "access_denied"), (400, "invalid_target")),
    (odd_push, (403, "unauthorized_client"), (400, "unauthorized_client")),
]


@pytest.mark.parametrize(("ask", "ours", "standard"), ANSWERS, ids=[row[0].__name__ for row in ANSWERS])
def test_the_setting_of_a_client_selects_the_code_of_each_refusal(
    tenant: Tenant, ask: Callable[[Tenant, Registered], Received], ours: tuple[int, str], standard: tuple[int, str]
) -> None:
    said = []
    for settings, expected in (({}, ours), ({"oauth_standard_errors": True}, standard)):
        answer = ask(tenant, web_client(tenant, settings=settings))
        assert (answer.status, answer.json()["error"]) == expected
        assert "www-authenticate" not in answer.headers
        said.append(answer.json()["error_description"])
    # The description is the same in both cases.
    assert said[0] == said[1]


def test_a_client_with_a_wrong_secret_in_the_header_gets_a_challenge(tenant: Tenant) -> None:
    settings = {"oauth_standard_errors": True}
    registered = web_client(tenant, token_endpoint_auth_method="client_secret_basic", settings=settings)
    headers = basic(registered.client_id, "wrong")
    answer = ask_token(tenant, {"grant_type": "authorization_code", "code": "x"}, headers=headers)
    assert (answer.status, answer.json()["error"]) == (401, "invalid_client")
    assert answer.headers["www-authenticate"].startswith("Basic realm=")


def test_a_public_client_can_get_standard_answers_but_an_unknown_client_cannot(tenant: Tenant) -> None:
    registered = public_client(tenant, settings={"oauth_standard_errors": True})
    assert ask_token(tenant, code_form(registered, "x")).status == 400
    unknown = ask_token(tenant, {**code_form(registered, "x"), "client_id": "unknown"})
    assert (unknown.status, unknown.json()["error"]) == (401, "access_denied")
    assert ask_revocation(tenant, {"token": "x", "client_id": "unknown"}).json()["error"] == "invalid_client"


def test_a_waiting_device_gets_the_standard_codes(tenant: Tenant) -> None:
    device = television(tenant, settings={"oauth_standard_errors": True})
    device.begin()
    # RFC 8628, 3.5.
    assert [device.error() for _ in range(2)] == [(400, "authorization_pending"), (400, "slow_down")]
    device.expire()
    assert device.error() == (400, "expired_token")
    refused = device.start(client_id="unknown")
    assert (refused.status, refused.json()["error"]) == (401, "invalid_client")


def test_answers_through_the_browser_contain_only_registered_codes(login: Login) -> None:
    login.begin_session()
    set_client(login, settings={"oauth_standard_errors": True})
    block_user(tenant_id=login.tenant.pk, user_id=login.user.user_id)
    answer = login.ask(prompt="none").answer
    assert answer["error"] in AUTHORIZATION_CODES


def cases() -> list[Case]:
    """Return every refusal of the token endpoint and related endpoints. `/passwordless/start` is left out, because it has its own codes."""
    of_grant = [case for case in PasswordlessCase if case.failure.error == "invalid_grant"]
    return [case for case in (*OAuthCase, *LoginCase, *DeviceCase, *CibaCase, *of_grant) if case not in ELSEWHERE]


def test_every_standard_answer_has_a_registered_code_and_status() -> None:
    for case in cases():
        failure = standard_failure(case.failure, case)
        assert failure.error in TOKEN_CODES | AUTHORIZATION_CODES, case
        assert failure.status in (400, 401, 429, 500, 503), case
        assert (failure.status == 401) == (failure.error == "invalid_client"), case
        assert standard_redirect(failure) in AUTHORIZATION_CODES
    # RFC 8628, 3.5.
    waiting = [standard_failure(case.failure, case).status for case in (DeviceCase.PENDING, DeviceCase.SLOW_DOWN, DeviceCase.EXPIRED)]
    assert waiting == [400, 400, 400]


def test_every_code_in_the_standard_table_differs_from_the_default_code() -> None:
    changed: Any = [case for case, error in STANDARD_CODES.items() if case.failure.error == error]
    assert changed == []
