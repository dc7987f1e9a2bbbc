"""Codes of passwordless connections at `/oauth/ro` and `/co/authenticate`. A code is valid for one login."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.models import PasswordlessCode
from authapi.protocols.legacy.one_time_codes import CREDENTIAL_TYPE
from authapi.views import HOT_ENDPOINTS
from identity.models import Job
from identity.services.connections import create_connection
from tests.authapi.asgi_client import Received, send
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.passwordless.messages import last_code, wrong
from tests.authapi.protocols.legacy.conftest import EMAIL, OldClient, refusal

NUMBER = "+4915112345678"
ADDRESSES = {"email": EMAIL, "sms": NUMBER}


@pytest.fixture
def coded(old: OldClient, settings: Any) -> OldClient:
    """Return the client of the fixture `old`, and enable two passwordless connections for it: email and sms."""
    settings.SMS_SENDER = {"kind": "console"}
    for strategy in ADDRESSES:
        create_connection(tenant_id=old.tenant.pk, name=strategy, strategy=strategy, enabled_clients=[old.client.client_id], options={})
    old.set(token_endpoint_auth_method="none")
    return old


def code_of(old: OldClient, strategy: str = "email") -> str:
    field = {"email": "email", "sms": "phone_number"}[strategy]
    body = f'{{"client_id": "{old.client.client_id}", "connection": "{strategy}", "{field}": "{ADDRESSES[strategy]}", "send": "code"}}'
    headers = {"Content-Type": "application/json"}
    answer = send(HOT_ENDPOINTS["/passwordless/start"], "POST", host=old.host, headers=headers, chunks=(body.encode(),))
    assert answer.status == 200, answer.body
    return last_code(old.tenant.pk)


def log_in(old: OldClient, code: str, strategy: str = "email", **changes: Any) -> Received:
    return old.log_in(connection=strategy, username=ADDRESSES[strategy], password=code, **changes)


def authenticate(old: OldClient, code: str, strategy: str = "email", **changes: Any) -> Received:
    named = {"credential_type": CREDENTIAL_TYPE, "realm": strategy, "username": ADDRESSES[strategy]}
    return old.authenticate(**{**named, "password": None, "otp": code, **changes})


@pytest.mark.parametrize("strategy", ADDRESSES)
def test_a_code_is_accepted_once_instead_of_a_password(coded: OldClient, strategy: str) -> None:
    code = code_of(coded, strategy)
    assert refusal(log_in(coded, wrong(code), strategy)) == (401, "invalid_user_password", "Wrong email or password.")
    answer = log_in(coded, code, strategy)
    assert answer.status == 200, answer.body
    assert decoded(answer.json()["id_token"])[1]["amr"] == ["otp", strategy]
    assert log_in(coded, code, strategy).status == 401


@pytest.mark.parametrize(("strategy", "kind"), [("email", "email"), ("sms", "phone number")])
def test_the_answer_to_a_wrong_code_in_a_form_does_not_mention_a_password(coded: OldClient, strategy: str, kind: str) -> None:
    code = code_of(coded, strategy)
    told = (401, "access_denied", f"Wrong {kind} or verification code.")
    assert refusal(authenticate(coded, wrong(code), strategy)) == told
    assert refusal(authenticate(coded, code, strategy, username="odd")) == told
    assert sorted(authenticate(coded, code, strategy).json()) == ["co_id", "co_verifier", "login_ticket"]
    assert refusal(authenticate(coded, code, strategy)) == told


def test_a_client_that_requires_organizations_gets_no_token_and_the_code_stays_valid(coded: OldClient) -> None:
    code = code_of(coded)
    coded.set(settings={"organization_usage": "require"})
    assert refusal(log_in(coded, code)) == (400, "invalid_request", "parameter organization is required for this client")
    assert PasswordlessCode.objects.of(coded.tenant.pk).filter(used_at=None).exists()


def test_guesses_are_counted_over_all_endpoints(coded: OldClient) -> None:
    code = code_of(coded)
    for by in (1, 2, 3):
        assert log_in(coded, wrong(code, by=by)).status == 401
    for by in (4, 5):
        assert authenticate(coded, wrong(code, by=by)).status == 401
    forget_all()
    assert log_in(coded, code).json()["error"] == authenticate(coded, code).json()["error"] == "too_many_attempts"
    assert Job.objects.of(coded.tenant.pk).filter(type=Job.Type.PASSWORDLESS_CODE).count() == 1
