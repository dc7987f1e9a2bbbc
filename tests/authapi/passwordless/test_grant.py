"""The otp grant and challenges: a code is exchanged for tokens once.

The first exchange creates the account if the connection allows sign-ups.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import time_machine

from authapi.models import PasswordlessCode, SignIn
from authapi.services.clients import update_client
from events.models import Event
from identity.models import User
from identity.services.users import create_user, link_users, update_user
from tests.authapi.asgi_client import Received
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.passwordless.conftest import ADA, NUMBER, Door, set_options
from tests.authapi.passwordless.messages import jobs_of, last_code, wrong
from tests.factories.sign_in import people

WRONG = (403, {"error": "invalid_grant", "error_description": "Wrong email or verification code."})
WRONG_NUMBER = (403, {"error": "invalid_grant", "error_description": "Wrong phone number or verification code."})


def outcome(answer: Received) -> tuple[int, Any]:
    return answer.status, answer.json()


def test_the_first_code_creates_the_account_and_records_its_event(door: Door) -> None:
    answer = door.redeem(door.code())
    assert answer.status == 200, answer.body
    [user] = User.objects.of(door.tenant.pk)
    assert user.user_id.startswith("email|")
    assert (user.email, user.email_verified, user.logins_count) == (ADA, True, 1)
    claims = decoded(answer.json()["id_token"])[1]
    assert (claims["sub"], claims["amr"]) == (user.user_id, ["otp", "email"])
    [event] = Event.objects.filter(tenant_id=door.tenant.pk, type="user.created")
    assert event is not None
    types = list(SignIn.objects.of(door.tenant.pk).order_by("created_at", "pk").values_list("type", flat=True))
    assert sorted(types) == ["cls", "s", "ss"]


def test_the_first_code_for_a_phone_number_creates_a_separate_account(door: Door) -> None:
    door.start(connection="sms", email=None, phone_number=NUMBER)
    answer = door.redeem(last_code(door.tenant.pk), username="+49 151 12345678", realm="sms")
    assert answer.status == 200, answer.body
    [user] = User.objects.of(door.tenant.pk)
    assert user.user_id.startswith("sms|")
    assert (user.phone_number, user.phone_verified, user.email) == (NUMBER, True, None)
    assert decoded(answer.json()["id_token"])[1]["amr"] == ["otp", "sms"]


def test_later_codes_find_the_same_account_for_every_spelling_of_the_address(door: Door) -> None:
    door.redeem(door.code())
    answer = door.redeem(door.code(email="ADA@example.TEST"), username="Ada@Example.Test")
    assert answer.status == 200
    assert User.objects.of(door.tenant.pk).count() == 1


def test_an_address_does_not_find_an_account_of_another_connection(door: Door) -> None:
    database = people(door.tenant, door.client)
    taken = create_user(tenant_id=door.tenant.pk, connection=database, email=ADA, email_verified=True)
    answer = door.redeem(door.code())
    assert decoded(answer.json()["id_token"])[1]["sub"] != taken.user_id
    assert User.objects.of(door.tenant.pk).filter(email=ADA).count() == 2


def test_a_linked_identity_finds_its_primary_account(door: Door) -> None:
    primary = create_user(tenant_id=door.tenant.pk, connection=people(door.tenant, door.client), email="other@example.test")
    secondary = create_user(tenant_id=door.tenant.pk, connection=door.email, email=ADA, email_verified=True)
    link_users(tenant_id=door.tenant.pk, primary_id=primary.user_id, secondary_id=secondary.user_id)
    answer = door.redeem(door.code())
    assert decoded(answer.json()["id_token"])[1]["sub"] == primary.user_id


def test_an_unverified_address_is_verified_by_the_first_code(door: Door) -> None:
    user = create_user(tenant_id=door.tenant.pk, connection=door.email, email=ADA)
    assert door.redeem(door.code()).status == 200
    user.refresh_from_db()
    assert user.email_verified


def test_only_the_right_code_reveals_that_the_user_is_blocked(door: Door) -> None:
    user = create_user(tenant_id=door.tenant.pk, connection=door.email, email=ADA)
    update_user(tenant_id=door.tenant.pk, user_id=user.user_id, changes={"blocked": True})
    code = door.code()
    assert outcome(door.redeem(wrong(code))) == WRONG
    assert outcome(door.redeem(code)) == (403, {"error": "unauthorized", "error_description": "user is blocked"})
    assert outcome(door.redeem(code)) == WRONG


def test_a_code_is_accepted_once(door: Door) -> None:
    code = door.code()
    assert door.redeem(code).status == 200
    assert outcome(door.redeem(code)) == WRONG


def test_two_simultaneous_uses_of_a_code_cause_one_login(door: Door) -> None:
    code, barrier, answers = door.code(), threading.Barrier(2), []

    def use() -> None:
        barrier.wait(timeout=10)
        answers.append(door.redeem(code).status)

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(answers) == [200, 403]
    assert User.objects.of(door.tenant.pk).count() == 1


def test_an_expired_code_is_refused(door: Door) -> None:
    code = door.code()
    with time_machine.travel(time.time() + 181):
        assert outcome(door.redeem(code)) == WRONG


def test_the_two_newest_codes_are_valid_and_a_login_invalidates_both(door: Door) -> None:
    first, second, third = door.code(), door.code(), door.code()
    assert outcome(door.redeem(first)) == WRONG
    assert door.redeem(second).status == 200
    assert outcome(door.redeem(third)) == WRONG


@pytest.mark.parametrize(
    "changes", [{"username": "eve@example.test"}, {"username": "no address"}, {"otp": "12345678901234567890"}, {"otp": "abcdef"}]
)
def test_the_answer_does_not_reveal_why_a_code_is_refused(door: Door, changes: dict[str, str]) -> None:
    code = door.code()
    assert outcome(door.redeem(code, **changes)) == WRONG


def test_an_invalid_number_has_its_own_error_text(door: Door) -> None:
    door.start(connection="sms", email=None, phone_number=NUMBER)
    assert outcome(door.redeem(wrong(last_code(door.tenant.pk)), username=NUMBER, realm="sms")) == WRONG_NUMBER


@pytest.mark.parametrize("missing", ["otp", "username", "realm"])
def test_the_refusal_names_a_missing_parameter(door: Door, missing: str) -> None:
    form: dict[str, Any] = {"code": door.code(), missing: None}
    code = form.pop("code")
    answer = door.redeem(code, **form)
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request")
    assert missing in answer.json()["error_description"]


def test_an_unknown_realm_is_refused(door: Door) -> None:
    answer = door.redeem(door.code(), realm="nowhere")
    assert outcome(answer) == (403, {"error": "invalid_grant", "error_description": "Unknown or invalid realm"})


def test_a_client_without_the_grant_is_refused(door: Door) -> None:
    code = door.code()
    update_client(tenant_id=door.tenant.pk, client_id=door.client.client_id, changes={"grant_types": ["authorization_code"]})
    forget_all()
    answer = door.redeem(code)
    assert (answer.status, answer.json()["error"]) == (403, "unauthorized_client")


def test_a_client_that_requires_organizations_is_refused_and_the_code_stays_valid(door: Door) -> None:
    code = door.code()
    update_client(tenant_id=door.tenant.pk, client_id=door.client.client_id, changes={"settings": {"organization_usage": "require"}})
    forget_all()
    assert door.redeem(code).status == 400
    assert PasswordlessCode.objects.of(door.tenant.pk).filter(used_at=None).exists()


def test_a_right_code_of_an_unknown_user_is_refused_if_sign_ups_are_off(door: Door) -> None:
    set_options(door.email, disable_signup=True)
    assert outcome(door.redeem(door.code())) == WRONG
    assert not User.objects.of(door.tenant.pk).exists()


# --- Challenges -------------------------------------------------------------------------------------------------------


def challenge(door: Door, *, path: str = "/otp/challenge", **changes: Any) -> Received:
    body = {**door.proof(), "connection": "email", "email": ADA, "allow_signup": True, **changes}
    return door.post(path, {name: value for name, value in body.items() if value is not None})


@pytest.mark.parametrize("path", ["/otp/challenge", "/passwordless/challenge"])
def test_a_challenge_and_its_code_are_exchanged_for_tokens(door: Door, path: str) -> None:
    session = challenge(door, path=path).json()
    assert list(session) == ["auth_session"]
    answer = door.redeem(last_code(door.tenant.pk), username=None, realm=None, **session)
    assert answer.status == 200, answer.body
    assert User.objects.of(door.tenant.pk).get().email == ADA


def test_a_challenge_creates_an_account_only_on_request(door: Door) -> None:
    session = challenge(door, allow_signup=None).json()
    code = last_code(door.tenant.pk)
    assert outcome(door.redeem(code, username=None, realm=None, **session)) == WRONG
    assert not User.objects.of(door.tenant.pk).exists()


@pytest.mark.parametrize(
    "changes",
    [{"connection": "nowhere"}, {"connection": None}, {"email": None}, {"email": "odd"}, {"delivery_method": "voice"}],
)
def test_an_invalid_challenge_is_refused(door: Door, changes: dict[str, Any]) -> None:
    answer = challenge(door, **changes)
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request")
    assert jobs_of(door.tenant.pk) == []


def test_an_unknown_auth_session_is_refused(door: Door) -> None:
    answer = door.redeem("123456", username=None, realm=None, auth_session="unknown")
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request")


# --- /passwordless/verify ---------------------------------------------------------------------------------------------


def test_passwordless_verify_does_not_use_up_the_code(door: Door) -> None:
    code = door.code()
    body = {"connection": "email", "email": ADA, "verification_code": code}
    answer = door.post("/passwordless/verify", body)
    assert (answer.status, answer.body) == (200, b"")
    variant = {"grant_type": "password", "connection": "email", "username": ADA, "password": code}
    assert door.post("/passwordless/verify", variant).status == 200
    assert door.redeem(code).status == 200
    refused = door.post("/passwordless/verify", body)
    assert (refused.status, refused.json()["error"]) == (401, "invalid_user_password")


def test_passwordless_verify_counts_wrong_codes(door: Door) -> None:
    code = door.code()
    for by in range(1, 6):
        assert (
            door.post("/passwordless/verify", {"connection": "email", "email": ADA, "verification_code": wrong(code, by=by)}).status == 401
        )
    assert door.redeem(code).status == 429
