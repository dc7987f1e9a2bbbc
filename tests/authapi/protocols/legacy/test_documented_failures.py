"""Every failure of codes, old clients and database connections in the contract (2.5, 2.9, 2.10), as sent on the wire.

A row is a request that fails, with the status, the error and the text of the answer. The text is None if the contract defines
no text. `Row.before` prepares the state that a row needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from authapi.protocols.legacy.opting_in import DELEGATION_BY_ID_TOKEN, PASSWORD, SOCIAL_TOKEN
from authapi.views import HOT_ENDPOINTS
from identity.services.connections import create_connection, update_connection
from identity.services.users import update_user
from tests.authapi.accounts.logging_in import protect
from tests.authapi.asgi_client import Received, send
from tests.authapi.memory import forget_all
from tests.authapi.protocols.legacy.conftest import EMAIL, GRANTS, OldClient
from tests.authapi.protocols.legacy.test_one_time_codes import NUMBER, code_of
from tests.authapi.protocols.legacy.test_one_time_codes import coded as coded
from tests.factories.sign_in import PASSWORD as RIGHT

OTP = "http://auth0.com/oauth/grant-type/passwordless/otp"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
WRONG = "Wrong email or password."
Ask = Callable[[OldClient], Received]
Before = Callable[[OldClient], Any]


@dataclass(frozen=True)
class Row:
    """A failure in the contract: the request that fails, and the expected answer."""

    status: int
    error: str
    text: str | None
    ask: Ask
    before: Before = lambda _: None
    # The names of the JSON members that contain the error and the text. Some endpoints name these members `code` and `description`.
    names: tuple[str, str] = ("error", "error_description")


def hot(path: str, host: str | None = None, **body: Any) -> Ask:
    def ask(old: OldClient) -> Received:
        named = {"client_id": old.client.client_id, **body}
        raw = json.dumps({name: value for name, value in named.items() if value is not None}).encode()
        return send(HOT_ENDPOINTS[path], "POST", host=host or old.host, headers={"Content-Type": "application/json"}, chunks=(raw,))

    return ask


def start(**body: Any) -> Ask:
    return hot("/passwordless/start", **{"connection": "email", "email": EMAIL, "send": "code", **body})


def legacy(path: str, **body: Any) -> Ask:
    return lambda old: old.ask(path, {"client_id": old.client.client_id, **body})


def log_in(**changes: Any) -> Ask:
    return lambda old: old.log_in(**changes)


def without_grant(grant: str) -> Before:
    return lambda old: old.set(grant_types=[one for one in GRANTS if one != grant])


def with_connection(**columns: Any) -> Before:
    def make(old: OldClient) -> None:
        named = {"name": "other", "strategy": "oidc", "options": {"client_id": "x", "issuer": "https://id.example.test"}, **columns}
        create_connection(tenant_id=old.tenant.pk, enabled_clients=[old.client.client_id] * (named.pop("enabled", 1)), **named)

    return make


def blocked(old: OldClient) -> None:
    update_user(tenant_id=old.tenant.pk, user_id=old.user.user_id, changes={"blocked": True})


def failed_often(old: OldClient) -> None:
    protect(old.tenant.pk, max_attempts=1)
    old.log_in(password="wrong")


def logged_in_often(old: OldClient) -> None:
    for _ in range(25):
        old.log_in()


def started_often(old: OldClient) -> None:
    for _ in range(6):
        start()(old)


def signs_up_nobody(old: OldClient) -> None:
    options = {**old.connection.options, "disable_signup": True}
    update_connection(tenant_id=old.tenant.pk, connection_id=old.connection.pk, changes={"options": options})


def sign_up(**body: Any) -> Ask:
    return hot("/dbconnections/signup", **{"connection": "people", "email": "new@example.test", "password": RIGHT, **body})


def token(**body: Any) -> Ask:
    return hot("/oauth/token", **{"grant_type": OTP, "otp": "000000", "scope": "openid", **body})


DATABASE = ("code", "description")
ROWS: dict[str, Row] = {
    # Contract, 2.5
    "start: tenant": Row(400, "bad.tenant", None, hot("/passwordless/start", host="unknown.example")),
    "start: client": Row(400, "bad.client_id", None, start(client_id="unknown")),
    "start: connection": Row(400, "bad.connection", None, start(connection="nowhere")),
    "start: authParams": Row(400, "bad.authParams", None, start(send="link", authParams="no object")),
    "start: request": Row(400, "bad.request", None, start(email=None)),
    "start: number": Row(400, "bad.phone_number", None, start(connection="sms", phone_number="5550100")),
    "start: too many requests": Row(429, "too_many_requests", None, start(), started_often),
    "verify": Row(
        401,
        "invalid_user_password",
        "Wrong email or verification code.",
        hot("/passwordless/verify", connection="email", email=EMAIL, verification_code="000000"),
    ),
    "challenge": Row(400, "invalid_request", None, hot("/otp/challenge", connection="nowhere", email=EMAIL)),
    "otp by mail": Row(403, "invalid_grant", "Wrong email or verification code.", token(realm="email", username=EMAIL), code_of),
    "otp by text": Row(403, "invalid_grant", "Wrong phone number or verification code.", token(realm="sms", username=NUMBER)),
    # Contract, 2.9
    **{
        f"ro: missing {name}": Row(400, "invalid_request", f"missing {name} parameter", log_in(**{name: None}))
        for name in (
            "client_id",
            "connection",
            "grant_type",
            "username",
            "password",
        )
    },
    "ro: connection unknown": Row(400, "invalid_request", "the connection was not found", log_in(connection="nowhere")),
    "ro: connection disabled": Row(
        400, "invalid_request", "the connection was disabled", log_in(connection="other"), with_connection(enabled=0)
    ),
    "ro: connection of a wrong kind": Row(
        400,
        "invalid_request",
        "specified strategy does not support requested operation",
        log_in(connection="other"),
        with_connection(),
    ),
    "ro: wrong password": Row(401, "invalid_user_password", WRONG, log_in(password="wrong")),
    "ro: unknown user": Row(401, "invalid_user_password", WRONG, log_in(username="gone@example.test")),
    "ro: blocked user": Row(401, "unauthorized", "user is blocked", log_in(), blocked),
    "ro: client": Row(403, "unauthorized_client", "invalid client", log_in(client_id="unknown")),
    "ro: grant": Row(403, "unauthorized_client", None, log_in(), without_grant(PASSWORD)),
    "ro: too many failures": Row(429, "too_many_attempts", None, log_in(), failed_often),
    "ro: too many logins": Row(429, "too_many_logins", None, log_in(), logged_in_often),
    "access_token: missing": Row(
        400, "invalid_request", "missing access_token parameter", legacy("/oauth/access_token", connection="people")
    ),
    "access_token: grant": Row(
        403, "unauthorized_client", None, legacy("/oauth/access_token", connection="people", access_token="x"), without_grant(SOCIAL_TOKEN)
    ),
    "delegation: missing": Row(400, "invalid_request", None, legacy("/delegation", grant_type=JWT_BEARER)),
    "delegation: token": Row(401, "invalid_token", None, legacy("/delegation", grant_type=JWT_BEARER, id_token="x.y.z", api_type="app")),
    "delegation: grant": Row(
        403,
        "unauthorized_client",
        None,
        legacy("/delegation", grant_type=JWT_BEARER, id_token="x.y.z"),
        without_grant(DELEGATION_BY_ID_TOKEN),
    ),
    "tokeninfo: missing": Row(400, "invalid_request", "missing id_token parameter", legacy("/tokeninfo")),
    "tokeninfo: token": Row(401, "invalid_token", None, legacy("/tokeninfo", id_token="x.y.z")),
    "unlink: missing": Row(400, "invalid_request", None, legacy("/login/unlink", access_token="x")),
    "unlink: token": Row(401, "unauthorized", None, legacy("/login/unlink", access_token="x", user_id="auth0|x")),
    "form: wrong password": Row(401, "access_denied", WRONG, lambda old: old.authenticate(password="wrong")),
    "form: unknown user": Row(401, "access_denied", WRONG, lambda old: old.authenticate(username="gone@example.test")),
    "form: origin": Row(403, "access_denied", None, lambda old: old.authenticate(origin="https://evil.example")),
    "form: switched off": Row(
        403,
        "unauthorized_client",
        None,
        lambda old: old.authenticate(),
        lambda old: old.set(settings={"cross_origin_authentication": False}),
    ),
    # Contract, 2.10
    "sign-up: password": Row(400, "invalid_password", None, sign_up(password="a"), names=DATABASE),
    "sign-up: taken": Row(400, "invalid_signup", "Invalid sign up", sign_up(email=EMAIL), names=DATABASE),
    "sign-up: off": Row(400, "unauthorized", None, sign_up(), signs_up_nobody, names=DATABASE),
    "sign-up: client": Row(400, "unauthorized", None, sign_up(client_id="unknown"), names=DATABASE),
    "change: missing": Row(400, "invalid_request", None, hot("/dbconnections/change_password", connection="people"), names=DATABASE),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_documented_failure_has_the_documented_answer(coded: OldClient, name: str) -> None:
    row = ROWS[name]
    coded.set(grant_types=[*GRANTS, OTP])
    row.before(coded)
    forget_all()
    answer = row.ask(coded)
    told = answer.json()
    error, text = (told[member] for member in row.names)
    assert (answer.status, error) == (row.status, row.error), told
    assert row.text is None or text == row.text, told
    assert text
    assert "www-authenticate" not in answer.headers


def test_a_text_message_without_a_sender_gets_the_documented_failure(coded: OldClient, settings: Any) -> None:
    settings.SMS_SENDER = {}
    answer = start(connection="sms", email=None, phone_number=NUMBER)(coded)
    assert (answer.status, answer.json()["error"]) == (400, "sms_provider_error")


def test_a_password_change_request_is_answered_in_plain_text_even_for_an_unknown_user(coded: OldClient) -> None:
    for email in (EMAIL, "gone@example.test"):
        answer = hot("/dbconnections/change_password", connection="people", email=email)(coded)
        assert (answer.status, answer.body.decode()) == (200, "We've just sent you an email to reset your password.")
