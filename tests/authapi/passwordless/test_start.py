"""`/passwordless/start`: accepted and refused requests, and answers that do not reveal whether an account exists."""

from __future__ import annotations

import time
from typing import Any

import pytest
import time_machine
from django.core import mail

from authapi import tenant_settings
from authapi.models import PasswordlessCode, SignIn, TenantSettings
from authapi.services.clients import revoke_client, update_client
from authapi.views import HOT_ENDPOINTS
from identity.models import Job, User
from identity.services.users import create_user
from tests.authapi.asgi_client import FORM, send
from tests.authapi.memory import forget_all
from tests.authapi.passwordless.conftest import ADA, NUMBER, Door, set_options
from tests.authapi.passwordless.messages import deliver, jobs_of, last_contents


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"client_id": None, "client_secret": None}, "bad.client_id"),
        ({"client_id": "unknown"}, "bad.client_id"),
        ({"connection": None}, "bad.connection"),
        ({"connection": 5}, "bad.connection"),
        ({"connection": "nowhere"}, "bad.connection"),
        ({"email": None}, "bad.request"),
        ({"email": "no address"}, "bad.request"),
        ({"email": "ada\u0131@example.test"}, "bad.request"),
        ({"email": {"a": 1}}, "bad.request"),
        ({"send": "pigeon"}, "bad.request"),
        ({"connection": "sms"}, "bad.request"),
        ({"connection": "sms", "phone_number": "5550100"}, "bad.phone_number"),
        ({"connection": "sms", "phone_number": "+1234567890123456"}, "bad.phone_number"),
        ({"send": "link", "authParams": "no object"}, "bad.authParams"),
        ({"send": "link", "authParams": ["a"]}, "bad.authParams"),
        ({"send": "link", "authParams": {"scope": 5}}, "bad.authParams"),
        ({"send": "link", "authParams": {"redirect_uri": "https://evil.example/"}}, "bad.authParams"),
        ({"send": "link", "authParams": {"response_type": "token"}}, "bad.authParams"),
    ],
)
def test_each_invalid_request_gets_the_error_code_that_client_libraries_expect(door: Door, changes: dict[str, Any], error: str) -> None:
    answer = door.start(**changes)
    assert (answer.status, answer.json()["error"]) == (400, error), answer.body
    assert answer.json()["error_description"]
    assert jobs_of(door.tenant.pk) == []


def test_an_unknown_host_is_an_unknown_tenant(door: Door) -> None:
    answer = send(HOT_ENDPOINTS["/passwordless/start"], "POST", host="unknown.example", headers={"Content-Type": FORM})
    assert (answer.status, answer.json()["error"]) == (400, "bad.tenant")


def test_an_unreadable_body_is_an_invalid_request(door: Door) -> None:
    answer = door.post("/passwordless/start", {}, kind="text/plain")
    assert (answer.status, answer.json()["error"]) == (400, "bad.request")


def test_a_confidential_client_must_authenticate(door: Door) -> None:
    answer = door.start(client_secret="wrong")
    assert (answer.status, answer.json()["error"]) == (401, "access_denied")
    assert jobs_of(door.tenant.pk) == []


def test_text_messages_without_a_sender_are_refused(door: Door, settings: Any) -> None:
    settings.SMS_SENDER = {}
    answer = door.start(connection="sms", email=None, phone_number=NUMBER)
    assert (answer.status, answer.json()["error"]) == (400, "sms_provider_error")
    assert not PasswordlessCode.objects.of(door.tenant.pk).exists()


def test_a_number_outside_the_countries_of_the_connection_is_refused(door: Door, settings: Any) -> None:
    settings.SMS_COUNTRIES = ("FR",)
    answer = door.start(connection="sms", email=None, phone_number=NUMBER)
    assert (answer.status, answer.json()["error"]) == (400, "bad.phone_number")


@pytest.mark.parametrize("kind", ["application/json", FORM])
def test_the_answer_contains_the_address_and_nothing_about_the_account(door: Door, kind: str) -> None:
    answer = door.post(
        "/passwordless/start", {**door.proof(), "connection": "email", "email": " Ada@Example.test ", "send": "code"}, kind=kind
    )
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    shown = answer.json()
    assert shown == {"_id": shown["_id"], "email": ADA, "email_verified": False}
    assert not User.objects.of(door.tenant.pk).exists()


def test_the_answer_for_a_number_has_the_same_form(door: Door) -> None:
    shown = door.start(connection="sms", email=None, phone_number="+49 (151) 123-45678", send=None).json()
    assert shown == {"_id": shown["_id"], "phone_number": NUMBER, "phone_verified": False}
    assert last_contents(door.tenant.pk).link == ""


def test_a_script_on_any_page_may_read_the_answer_and_send_a_language(door: Door) -> None:
    enable(door, "en", "de")
    preflight = send(HOT_ENDPOINTS["/passwordless/start"], "OPTIONS", host=f"{door.tenant.pk}.example.test")
    assert "X-Request-Language" in preflight.headers["access-control-allow-headers"]
    answer = door.start()
    assert answer.headers["access-control-allow-origin"] == "*"
    door.post("/passwordless/start", {**door.proof(), "connection": "email", "email": ADA, "send": "code"}, X_Request_Language="de")
    deliver(door.tenant.pk)
    assert mail.outbox[-1].subject.startswith("Ihr Code für ")
    assert mail.outbox[-1].extra_headers["Content-Language"] == "de"


@pytest.mark.parametrize("wish", ["de", "xx-YY", "de-AT" * 40, "../de"])
def test_an_unknown_language_does_not_prevent_the_message(door: Door, wish: str) -> None:
    door.post("/passwordless/start", {**door.proof(), "connection": "email", "email": ADA, "send": "code"}, X_Request_Language=wish)
    deliver(door.tenant.pk)
    assert mail.outbox[-1].extra_headers["Content-Language"] == "en"


def test_a_message_has_the_language_of_its_user_if_the_request_names_none(door: Door) -> None:
    enable(door, "en", "fr")
    create_user(tenant_id=door.tenant.pk, connection=door.email, email=ADA, user_metadata={"locale": "fr-CA"})
    door.post("/passwordless/start", {**door.proof(), "connection": "email", "email": ADA, "send": "code"})
    deliver(door.tenant.pk)
    assert mail.outbox[-1].extra_headers["Content-Language"] == "fr"


def enable(door: Door, *codes: str) -> None:
    TenantSettings.objects.of(door.tenant.pk).delete()
    TenantSettings(tenant=door.tenant, values={"enabled_locales": list(codes)}).save()
    tenant_settings.remembered_settings.clear()


def test_a_worker_sends_the_message_once_and_the_code_is_not_stored_in_plain_text(door: Door) -> None:
    code = door.code()
    [job] = jobs_of(door.tenant.pk)
    [row] = PasswordlessCode.objects.of(door.tenant.pk)
    stored = f"{job.parameters} {job.summary} {vars(row)} {[vars(line) for line in SignIn.objects.of(door.tenant.pk)]}"
    assert len(code) == 6
    assert code not in stored.replace(str(row.pk), "")
    deliver(door.tenant.pk)
    deliver(door.tenant.pk)
    assert code not in str([each.parameters for each in Job.objects.of(door.tenant.pk)])
    assert [code in message.body for message in mail.outbox] == [True]
    assert mail.outbox[0].to == [ADA]


def test_a_code_that_expired_before_the_worker_ran_is_not_sent(door: Door) -> None:
    door.code()
    with time_machine.travel(4 * 60 + time.time()):
        deliver(door.tenant.pk)
    assert mail.outbox == []


def test_if_sign_ups_are_off_unknown_addresses_get_the_same_answer_but_no_message(door: Door) -> None:
    set_options(door.email, disable_signup=True)
    create_user(tenant_id=door.tenant.pk, connection=door.email, email=ADA)
    known, unknown = door.start(), door.start(email="eve@example.test")
    assert known.status == unknown.status == 200
    assert set(known.json()) == set(unknown.json())
    assert {name for name in known.headers if not name.startswith("x-ratelimit")} == {
        name for name in unknown.headers if not name.startswith("x-ratelimit")
    }
    deliver(door.tenant.pk)
    assert [message.to for message in mail.outbox] == [[ADA]]
    assert all("sealed" not in job.parameters for job in Job.objects.of(door.tenant.pk))


def test_an_address_has_the_same_id_before_and_after_its_account_is_created(door: Door) -> None:
    before = door.start().json()["_id"]
    assert door.redeem(last_contents(door.tenant.pk).code).status == 200
    assert door.start().json()["_id"] == before


def test_the_request_is_logged(door: Door) -> None:
    door.start()
    door.start(connection="sms", email=None, phone_number=NUMBER)
    lines = SignIn.objects.of(door.tenant.pk).order_by("created_at")
    assert [(line.type, line.user_name, line.is_success) for line in lines] == [("cls", ADA, True), ("cs", NUMBER, True)]


def test_the_length_and_the_lifetime_of_codes_are_options_of_the_connection(door: Door) -> None:
    set_options(door.email, totp={"length": 8, "time_step": 60})
    code = door.code()
    assert len(code) == 8
    with time_machine.travel(time.time() + 61):
        assert door.redeem(code).status == 403


def test_a_revoked_client_is_refused(door: Door) -> None:
    revoke_client(tenant_id=door.tenant.pk, client_id=door.client.client_id)
    forget_all()
    assert door.start().json()["error"] == "bad.client_id"


def test_an_origin_that_the_client_does_not_allow_is_refused(door: Door) -> None:
    update_client(tenant_id=door.tenant.pk, client_id=door.client.client_id, changes={"allowed_origins": "https://app.example.test"})
    forget_all()
    answer = door.post("/passwordless/start", {**door.proof(), "connection": "email", "email": ADA}, Origin="https://evil.example")
    assert answer.status == 403
