"""`/dbconnections/signup` and `/dbconnections/change_password`, called by applications with their own forms."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine
from django.core import mail

from authapi.models import AccountTicket, Client, SignIn
from authapi.views import HOT_ENDPOINTS
from events.models import Event
from identity.models import Connection, Job, PasswordCredential, Tenant, User
from identity.services.connections import update_connection
from identity.services.jobs import run_job
from tests.authapi.accounts.logging_in import attempt, outcome, suspect
from tests.authapi.asgi_client import FORM, Received, send
from tests.factories.admin import new_tenant
from tests.factories.sign_in import PASSWORD, people, person, web_client

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
SENT = "We've just sent you an email to reset your password."


def post(tenant: Tenant | str, path: str, body: Any, *, kind: str = "application/json", address: str = "192.0.2.1") -> Received:
    raw = body if isinstance(body, bytes) else (urlencode(body) if kind == FORM else json.dumps(body)).encode()
    host = f"{tenant if isinstance(tenant, str) else tenant.pk}.example.test"
    headers = {"Content-Type": kind, "User-Agent": "Test/1.0"}
    return send(HOT_ENDPOINTS[f"/dbconnections/{path}"], "POST", host=host, headers=headers, chunks=(raw,), address=address)


def signup_form(client: Client, **more: Any) -> dict[str, Any]:
    return {"client_id": client.client_id, "connection": "people", "email": "new@example.test", "password": PASSWORD, **more}


def options(connection: Connection, **changes: Any) -> Connection:
    merged = {**connection.options, **changes}
    return update_connection(tenant_id=connection.tenant_id, connection_id=connection.pk, changes={"options": merged})


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"connection": None}, "invalid_request", "connection"),
        ({"connection": "nowhere"}, "invalid_request", "The connection does not exist."),
        ({"client_id": "unknown"}, "unauthorized", "The client does not exist."),
        ({"client_id": 5}, "invalid_request", "client_id must be a string"),
        ({"password": None}, "invalid_request", "password"),
        ({"password": "x" * 5000}, "invalid_request", "password"),
        ({"email": None}, "invalid_request", "email: Missing required parameter."),
        ({"email": "no address"}, "invalid_request", "email"),
        ({"email": {"a": 1}}, "invalid_request", "email: Must be a string."),
        ({"username": "ada"}, "invalid_request", "username: Not accepted by the connection."),
        ({"phone_number": "+15550100"}, "invalid_request", "phone_number: Not accepted by the connection."),
        ({"picture": "no address"}, "invalid_request", "picture"),
        ({"given_name": "x" * 151}, "invalid_request", "given_name"),
        ({"user_metadata": [1]}, "invalid_request", "user_metadata must be an object"),
        ({"user_metadata": {str(n): "x" for n in range(11)}}, "invalid_request", "more than 10 entries"),
        ({"user_metadata": {"x" * 101: "y"}}, "invalid_request", "longer than 100 characters"),
        ({"user_metadata": {"x": "y" * 501}}, "invalid_request", "at most 500 characters"),
        ({"user_metadata": {"x": 5}}, "invalid_request", "at most 500 characters"),
    ],
)
def test_an_invalid_sign_up_is_refused(client: Client, connection: Connection, changes: dict[str, Any], code: str, words: str) -> None:
    answer = post(client.tenant_id, "signup", signup_form(client, **changes))
    assert (answer.status, answer.json()["statusCode"]) == (400, 400)
    assert answer.json()["code"] == code
    assert words in answer.json()["description"]
    assert PASSWORD not in answer.body.decode()
    assert not User.objects.of(client.tenant_id).exists()


def test_the_refusal_of_a_taken_address_does_not_reveal_that_it_is_taken(client: Client, ada: User) -> None:
    for email in ("ada@example.test", "ADA@Example.Test"):
        answer = post(client.tenant_id, "signup", signup_form(client, email=email))
        assert answer.status == 400
        assert answer.json() == {"name": "BadRequestError", "code": "invalid_signup", "description": "Invalid sign up", "statusCode": 400}
    assert User.objects.of(client.tenant_id).count() == 1
    line = SignIn.objects.of(client.tenant_id).filter(type="fs")[0]
    assert (line.description, line.user_id, line.connection) == ("The user already exists.", "", "people")


def test_a_weak_password_is_refused_with_the_broken_rules(client: Client, connection: Connection) -> None:
    answer = post(client.tenant_id, "signup", signup_form(client, password="short"))
    found = answer.json()
    assert (answer.status, found["name"], found["code"], found["message"]) == (
        400, "PasswordStrengthError", "invalid_password", "Password is too weak",
    )  # fmt: skip
    length, kinds = found["description"]["rules"]
    assert (length["code"], length["format"], length["verified"]) == ("lengthAtLeast", [8], False)
    assert (kinds["code"], kinds["verified"]) == ("containsAtLeast", False)
    assert [item["verified"] for item in kinds["items"]] == [True, False, False, False]
    assert found["policy"].startswith("* At least 8 characters in length\n* Contain at least 3 of the following 4 types")
    assert "short" not in answer.body.decode().replace("shortest", "")


@pytest.mark.parametrize(
    ("changes", "password", "name"),
    [
        ({"password_dictionary": {"enable": True}, "passwordPolicy": "low"}, "sunshine", "PasswordDictionaryError"),
        ({"password_no_personal_info": {"enable": True}}, "My-new@example.test-1", "PasswordNoUserInfoError"),
    ],
)
def test_common_and_personal_passwords_are_refused_with_the_reason(
    client: Client, connection: Connection, changes: dict[str, Any], password: str, name: str
) -> None:
    options(connection, **changes)
    found = post(client.tenant_id, "signup", signup_form(client, password=password)).json()
    assert (found["name"], found["code"]) == (name, "invalid_password")
    assert isinstance(found["description"], str)


def test_a_connection_with_disabled_sign_ups_refuses_a_sign_up(client: Client, connection: Connection) -> None:
    options(connection, disable_signup=True)
    answer = post(client.tenant_id, "signup", signup_form(client))
    assert (answer.status, answer.json()["code"]) == (400, "unauthorized")
    assert not User.objects.of(client.tenant_id).exists()


def test_a_client_can_sign_up_users_only_at_its_enabled_connections(tenant: Tenant, client: Client, connection: Connection) -> None:
    people(tenant, name="others")
    assert post(tenant, "signup", signup_form(client, connection="others")).json()["code"] == "unauthorized"


def test_a_client_of_another_tenant_cannot_sign_up_users(client: Client, connection: Connection) -> None:
    other = new_tenant()
    theirs, _ = web_client(other)
    people(other, theirs)
    assert post(other, "signup", signup_form(client)).json()["code"] == "unauthorized"
    assert post(client.tenant_id, "signup", signup_form(theirs)).json()["code"] == "unauthorized"
    assert not User.objects.of(other.pk).exists()


def test_an_ip_address_with_too_many_sign_ups_is_refused(client: Client, connection: Connection) -> None:
    suspect(client.tenant_id, stage={"pre-user-registration": {"max_attempts": 2, "rate": 60_000}})
    with time_machine.travel(BEGIN, tick=False):
        answers = [post(client.tenant_id, "signup", signup_form(client, email=f"n{n}@example.test")) for n in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert answers[2].json()["code"] == "too_many_attempts"
        elsewhere = post(client.tenant_id, "signup", signup_form(client, email="n9@example.test"), address="192.0.2.9")
        assert elsewhere.status == 200


@pytest.mark.parametrize("kind", ["application/json", FORM])
def test_a_signed_up_user_can_log_in_and_the_event_names_the_client(client: Client, connection: Connection, kind: str) -> None:
    metadata = {"plan": "gold"}
    sent = signup_form(client, given_name="Ada", extra="x", user_metadata=json.dumps(metadata) if kind == FORM else metadata)
    answer = post(client.tenant_id, "signup", sent, kind=kind)
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    user = User.objects.of(client.tenant_id).get()
    assert answer.json() == {"_id": user.identifier, "email": "new@example.test", "email_verified": False}
    assert (user.given_name, user.user_metadata, user.name) == ("Ada", {"plan": "gold"}, "new@example.test")
    assert outcome(attempt(connection, "new@example.test")) == user
    event = json.loads(bytes(Event.objects.get(tenant_id=client.tenant_id, type="user.created").body))
    context = event["data"]["context"]
    assert context["client"] == {"id": client.client_id, "name": "Web shop", "metadata": {}}
    assert (context["request"]["ip"], context["request"]["user_agent"]) == ("192.0.2.1", "Test/1.0")
    line = SignIn.objects.of(client.tenant_id).get(type="ss")
    assert (line.user_id, line.is_success, line.ip) == (user.user_id, True, "192.0.2.1")


def test_a_connection_with_usernames_requires_a_username_of_valid_length(client: Client, connection: Connection) -> None:
    options(connection, requires_username=True, validation={"username": {"min": 3, "max": 8}})
    for name, words in ((None, "username: Missing"), ("ab", "3 to 8"), ("abcdefghi", "3 to 8"), ("a b c", "username")):
        assert words in post(client.tenant_id, "signup", signup_form(client, username=name)).json()["description"]
    answer = post(client.tenant_id, "signup", signup_form(client, username="countess"))
    assert answer.json()["username"] == "countess"
    taken = post(client.tenant_id, "signup", signup_form(client, email="other@example.test", username="COUNTESS"))
    assert taken.json()["code"] == "invalid_signup"


def test_attributes_of_the_connection_decide_which_identifiers_are_required(tenant: Tenant, client: Client) -> None:
    attributes = {
        "phone_number": {"identifier": {"active": True}},
        "email": {"identifier": {"active": True}, "signup": {"status": "optional"}},
    }
    people(tenant, client, attributes=attributes)
    assert "phone_number: Missing" in post(tenant, "signup", signup_form(client)).json()["description"]
    answer = post(tenant, "signup", signup_form(client, email=None, phone_number="+15550100"))
    assert answer.json().keys() == {"_id", "phone_number", "phone_verified"}


def test_a_sign_up_needs_no_client_id_if_a_client_uses_the_connection(tenant: Tenant, connection: Connection) -> None:
    body = {"connection": "people", "email": "new@example.test", "password": PASSWORD}
    assert post(tenant, "signup", body).status == 200


@pytest.mark.parametrize("path", ["signup", "change_password"])
@pytest.mark.parametrize("use", ["none", "revoked client", "client of another tenant"])
def test_a_sign_up_at_a_connection_without_clients_is_refused(
    tenant: Tenant, connection: Connection, client: Client, path: str, use: str
) -> None:
    enabled: list[str] = []
    if use == "revoked client":
        enabled = [client.client_id]
        Client.objects.of(tenant.pk).filter(pk=client.pk).update(revoked_at=BEGIN)
    elif use == "client of another tenant":
        enabled = [web_client(new_tenant())[0].client_id]
    # An older row may contain the id of a revoked client or of a client of another tenant. The services now refuse such ids, so write the
    # row directly.
    connection.enabled_clients = enabled
    connection.save()
    body = {"connection": "people", "email": "new@example.test", "password": PASSWORD}
    refused = post(tenant, path, body)
    assert (refused.status, refused.json()["code"]) == (400, "unauthorized")
    assert refused.json()["description"] == "The connection is not enabled for any client."
    assert not User.objects.of(tenant.pk).exists()
    assert not Job.objects.of(tenant.pk).exists()


def test_a_new_user_gets_the_mail_that_verifies_the_address(client: Client, connection: Connection, settings: Any) -> None:
    settings.MAIL_REACHES_PEOPLE = True
    post(client.tenant_id, "signup", signup_form(client))
    assert run_job(Job.objects.of(client.tenant_id).get(type=Job.Type.VERIFICATION_EMAIL).pk)
    assert mail.outbox[-1].to == ["new@example.test"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"connection": None}, "connection"),
        ({"email": None}, "email"),
        ({"email": 7}, "email"),
        ({"connection": "nowhere"}, "does not exist"),
    ],
)
def test_an_invalid_password_change_is_refused(client: Client, ada: User, body: dict[str, Any], words: str) -> None:
    sent = {"client_id": client.client_id, "connection": "people", "email": "ada@example.test", **body}
    answer = post(client.tenant_id, "change_password", sent)
    assert (answer.status, answer.json()["code"]) == (400, "invalid_request")
    assert words in answer.json()["description"]


@pytest.mark.parametrize("name", ["ada@example.test", "ADA@example.test", "nobody@example.test", "x" * 254])
def test_an_unknown_address_gets_the_same_answer_as_a_user_but_no_mail(client: Client, ada: User, name: str) -> None:
    answer = post(client.tenant_id, "change_password", {"client_id": client.client_id, "connection": "people", "email": name})
    assert (answer.status, answer.body.decode()) == (200, SENT)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert not mail.outbox
    assert run_job(Job.objects.of(client.tenant_id).get(type=Job.Type.PASSWORD_RESET_EMAIL).pk)
    assert [message.to for message in mail.outbox] == ([["ada@example.test"]] if name.lower().startswith("ada") else [])
    assert SignIn.objects.of(client.tenant_id).get(type="scpr").user_name == name


def test_an_unusable_name_gets_the_usual_answer_and_starts_no_job(client: Client, ada: User) -> None:
    for name in ("x" * 255, "x" * 60_000, " "):
        answer = post(client.tenant_id, "change_password", {"connection": "people", "email": name})
        assert (answer.status, answer.body.decode()) == (200, SENT)
    assert not Job.objects.of(client.tenant_id).exists()
    assert SignIn.objects.of(client.tenant_id).filter(type="scpr").count() == 3
    # Spaces around a name are ignored and not stored.
    assert post(client.tenant_id, "change_password", {"connection": "people", "email": f"{' ' * 60_000}ada@example.test"}).status == 200
    job = Job.objects.of(client.tenant_id).get()
    assert job.parameters["identifier"] == "ada@example.test"
    assert run_job(job.pk)
    assert mail.outbox[0].to == ["ada@example.test"]


def test_a_password_change_can_be_requested_by_username(client: Client, connection: Connection) -> None:
    person(connection, username="countess")
    post(client.tenant_id, "change_password", {"connection": "people", "username": "Countess"})
    assert run_job(Job.objects.of(client.tenant_id).get(type=Job.Type.PASSWORD_RESET_EMAIL).pk)
    assert mail.outbox[0].to == ["ada@example.test"]


def test_mails_to_one_account_are_limited_for_each_requesting_ip_address(client: Client, ada: User) -> None:
    sent = {"connection": "people", "email": "ada@example.test"}
    with time_machine.travel(BEGIN, tick=False) as clock:
        statuses = [post(client.tenant_id, "change_password", sent).status for _ in range(12)]
        assert statuses == [200] * 10 + [429, 429]
        assert post(client.tenant_id, "change_password", {**sent, "email": "ADA@example.test "}).status == 429
        assert post(client.tenant_id, "change_password", {**sent, "email": "nobody@example.test"}).status == 200
        clock.shift(timedelta(seconds=61))
        assert post(client.tenant_id, "change_password", sent).status == 200


def test_requests_from_one_ip_address_for_many_accounts_are_limited(client: Client, ada: User) -> None:
    with time_machine.travel(BEGIN, tick=False) as clock:
        sent = [{"connection": "people", "email": f"person{number}@example.test"} for number in range(103)]
        statuses = [post(client.tenant_id, "change_password", one).status for one in sent]
        assert statuses == [200] * 100 + [429] * 3
        # A refused request creates neither a job nor a line in the sign-in log.
        assert Job.objects.of(client.tenant_id).filter(type=Job.Type.PASSWORD_RESET_EMAIL).count() == 100
        assert SignIn.objects.of(client.tenant_id).filter(type="scpr").count() == 100
        assert post(client.tenant_id, "change_password", sent[0], address="198.51.100.9").status == 200
        clock.shift(timedelta(seconds=13))
        assert post(client.tenant_id, "change_password", sent[101]).status == 200


def test_addresses_of_one_ipv6_network_share_a_limit(client: Client, ada: User) -> None:
    sent = {"connection": "people", "email": "ada@example.test"}
    with time_machine.travel(BEGIN, tick=False):
        statuses = [post(client.tenant_id, "change_password", sent, address=f"2001:db8:1:2::{number:x}").status for number in range(11)]
    assert statuses == [200] * 10 + [429]


def test_requests_with_a_hidden_ip_address_are_not_limited_by_ip_address(client: Client, ada: User, settings: Any) -> None:
    settings.TRUSTED_PROXIES = ["192.0.2.0/24"]
    with time_machine.travel(BEGIN, tick=False):
        statuses = {
            post(client.tenant_id, "change_password", {"connection": "people", "email": f"p{number}@example.test"}).status
            for number in range(103)
        }
    assert statuses == {200}


def test_one_account_gets_at_most_ten_usable_links_even_from_many_ip_addresses(client: Client, ada: User) -> None:
    sent = {"connection": "people", "email": "ada@example.test"}
    for number in range(12):
        assert post(client.tenant_id, "change_password", sent, address=f"198.51.100.{number}").status == 200
    for job in Job.objects.of(client.tenant_id).filter(type=Job.Type.PASSWORD_RESET_EMAIL):
        assert run_job(job.pk)
    assert len(mail.outbox) == 10
    AccountTicket.objects.of(client.tenant_id).update(expires_at=BEGIN - timedelta(days=3650))
    post(client.tenant_id, "change_password", sent)
    assert run_job(Job.objects.of(client.tenant_id).latest("created_at").pk)
    assert len(mail.outbox) == 11


def test_requesting_a_change_does_not_change_the_password(client: Client, ada: User) -> None:
    before = PasswordCredential.objects.get(user=ada).password_hash
    post(client.tenant_id, "change_password", {"connection": "people", "email": "ada@example.test", "password": "Quite-Another-1"})
    assert PasswordCredential.objects.get(user=ada).password_hash == before


def test_an_unavailable_mail_server_does_not_delay_the_answer_or_lose_the_mail(client: Client, ada: User, settings: Any) -> None:
    working = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = "django.core.mail.backends.smtp.EmailBackend", "127.0.0.1", 9
    assert post(client.tenant_id, "change_password", {"connection": "people", "email": "ada@example.test"}).status == 200
    job = Job.objects.of(client.tenant_id).get()
    assert run_job(job.pk)
    job.refresh_from_db()
    assert job.has_effect_due
    assert job.lease_until is not None
    assert not AccountTicket.objects.of(client.tenant_id).exists()
    settings.EMAIL_BACKEND = working
    assert run_job(job.pk)
    job.refresh_from_db()
    assert (len(mail.outbox), job.status, job.has_effect_due) == (1, Job.Status.COMPLETED, False)


@pytest.mark.parametrize("path", ["signup", "change_password"])
@pytest.mark.parametrize(
    ("kind", "raw"), [("application/json", b"{"), ("text/plain", b"x"), ("application/json", b"[]"), (FORM, b"a=1&a=2")]
)
def test_an_unreadable_body_is_refused_in_the_error_format_of_dbconnections(client: Client, path: str, kind: str, raw: bytes) -> None:
    answer = post(client.tenant_id, path, raw, kind=kind)
    assert (answer.status, answer.json()["statusCode"], answer.json()["code"]) == (400, 400, "invalid_request")
