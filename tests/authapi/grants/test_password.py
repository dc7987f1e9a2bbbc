"""The password grants: the client sends the password that the user typed. Refusals do not reveal whether a user exists."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from authapi.api.client_bodies import ClientToCreate
from authapi.grants.password import REALM_GRANT
from authapi.models import SignIn
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import update_client
from authapi.services.tenant_settings import update_tenant_settings
from foundation.secrets.hashing import _threads
from identity.models import Connection, Tenant, User
from identity.services.connections import create_connection, update_connection
from identity.services.users import update_user
from tests.authapi.asgi_client import Received, ask_token, read_profile
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.deadlines import eventually
from tests.factories.authapi import Registered
from tests.factories.breach_list import detect, use_list, write_list
from tests.factories.identity import make_user
from tests.factories.logins import refresh_form, web_client

PASSWORD = "correct horse battery staple"
API = "urn:orders"
GRANTS = ("password", REALM_GRANT, "refresh_token")
WRONG = (403, {"error": "invalid_grant", "error_description": "Wrong email or password."})


@pytest.fixture
def client(tenant: Tenant) -> Registered:
    return web_client(tenant, grant_types=GRANTS)


@pytest.fixture
def people(tenant: Tenant, client: Registered) -> Connection:
    """The default directory, which is enabled for the client."""
    connection = create_connection(tenant_id=tenant.pk, name="people", strategy="database", enabled_clients=[client.client_id])
    update_tenant_settings(tenant_id=tenant.pk, changes={"default_directory": "people"})
    forget_all()
    return connection


@pytest.fixture
def alice(people: Connection) -> User:
    return make_user(connection=people, email="alice@example.test", password=PASSWORD)


def log_in(tenant: Tenant, client: Registered, *, address: str = "192.0.2.1", headers: Any = None, **changes: Any) -> Received:
    fields = {
        "grant_type": "password",
        "client_id": client.client_id,
        "client_secret": client.secret or None,
        "username": "alice@example.test",
        "password": PASSWORD,
    }
    form = {name: value for name, value in (fields | changes).items() if value is not None}
    return ask_token(tenant, form, address=address, headers=headers)


def outcome(answer: Received) -> tuple[int, Any]:
    return answer.status, answer.json()


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("grant", "missing"), [("password", "username"), ("password", "password"), (REALM_GRANT, "realm")])
def test_the_refusal_names_a_missing_parameter(tenant: Tenant, client: Registered, alice: User, grant: str, missing: str) -> None:
    changes: dict[str, Any] = {"grant_type": grant, missing: None}
    answer = log_in(tenant, client, **changes)
    assert outcome(answer) == (400, {"error": "invalid_request", "error_description": f"Missing required parameter: {missing}"})


@pytest.mark.parametrize("changes", [{"password": "wrong"}, {"username": "nobody@example.test"}])
def test_a_wrong_password_and_an_unknown_user_get_the_same_refusal(
    tenant: Tenant, client: Registered, alice: User, changes: dict[str, str]
) -> None:
    answer = log_in(tenant, client, **changes)
    assert outcome(answer) == WRONG
    assert "www-authenticate" not in answer.headers


def test_a_client_without_the_grant_type_gets_an_error_that_names_the_reason(tenant: Tenant, alice: User) -> None:
    for grant in ("password", REALM_GRANT):
        answer = log_in(tenant, web_client(tenant), grant_type=grant, realm="people")
        assert (answer.status, answer.json()["error"]) == (403, "unauthorized_client")
        assert answer.json()["error_description"] == f"Grant type '{grant}' not allowed for the client."


def test_the_setting_for_rfc_9700_disables_the_grant_for_every_client(
    tenant: Tenant, client: Registered, alice: User, settings: Any
) -> None:
    settings.OAUTH2_PROVIDER = {**settings.OAUTH2_PROVIDER, "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True}
    answer = log_in(tenant, client)
    assert (answer.status, answer.json()["error"]) == (400, "unsupported_grant_type")


def test_only_the_right_password_reveals_that_the_password_is_breached(
    tenant: Tenant, client: Registered, alice: User, tmp_path: Path, settings: Any
) -> None:
    use_list(settings, write_list(tmp_path / "list", PASSWORD, "wrong"))
    detect(tenant.pk, "block")
    refused = log_in(tenant, client)
    assert (refused.status, refused.json()["error"]) == (401, "password_leaked")
    assert "www-authenticate" not in refused.headers
    realm = log_in(tenant, client, grant_type=REALM_GRANT, realm="people")
    assert (realm.status, realm.json()["error"]) == (401, "password_leaked")
    assert outcome(log_in(tenant, client, password="wrong")) == WRONG
    assert outcome(log_in(tenant, client, username="nobody@example.test")) == WRONG
    use_list(settings, "")
    assert log_in(tenant, client).status == 200


def test_only_the_right_password_reveals_that_a_user_is_blocked(tenant: Tenant, client: Registered, alice: User) -> None:
    update_user(tenant_id=tenant.pk, user_id=alice.user_id, changes={"blocked": True})
    assert outcome(log_in(tenant, client)) == (403, {"error": "unauthorized", "error_description": "user is blocked"})
    assert outcome(log_in(tenant, client, password="wrong")) == WRONG


def test_too_many_failures_block_the_account_for_this_ip_address(tenant: Tenant, client: Registered, alice: User) -> None:
    for _ in range(10):
        assert outcome(log_in(tenant, client, password="wrong")) == WRONG
    blocked = log_in(tenant, client)
    assert (blocked.status, blocked.json()["error"]) == (429, "too_many_attempts")
    assert log_in(tenant, client, address="192.0.2.99").status == 200


def test_a_tenant_without_a_default_directory_gets_an_error_that_names_the_reason(tenant: Tenant, client: Registered) -> None:
    answer = log_in(tenant, client)
    assert (answer.status, answer.json()["error"]) == (403, "access_denied")
    assert "default connection" in answer.json()["error_description"]


@pytest.mark.parametrize("realm", ["nowhere", "closed"])
def test_an_unknown_realm_and_a_disabled_realm_get_the_same_refusal(tenant: Tenant, client: Registered, alice: User, realm: str) -> None:
    create_connection(tenant_id=tenant.pk, name="closed", strategy="database")
    answer = log_in(tenant, client, grant_type=REALM_GRANT, realm=realm)
    assert outcome(answer) == (403, {"error": "invalid_grant", "error_description": "Unknown or invalid realm"})


def test_a_directory_that_is_not_enabled_for_the_client_cannot_be_its_default(
    tenant: Tenant, client: Registered, alice: User, people: Connection
) -> None:
    update_connection(tenant_id=tenant.pk, connection_id=people.pk, changes={"enabled_clients": []})
    assert log_in(tenant, client).status == 403


def test_an_unknown_audience_is_refused_before_any_login(tenant: Tenant, client: Registered, alice: User) -> None:
    answer = log_in(tenant, client, audience="urn:unknown")
    assert outcome(answer) == (403, {"error": "access_denied", "error_description": "Service not enabled within domain: urn:unknown"})
    assert not SignIn.objects.of(tenant.pk).exists()


@pytest.mark.parametrize(
    ("usage", "sent", "words"),
    [
        ("require", {}, "parameter organization is required for this client"),
        ("require", {"organization": "org_some"}, "parameter organization is not allowed for this client"),
        ("allow", {"organization": "org_some"}, "parameter organization is not allowed for this client"),
        ("deny", {"organization": "org_some"}, "parameter organization is not allowed for this client"),
    ],
)
def test_a_login_is_refused_if_the_organization_is_missing_or_not_allowed(
    tenant: Tenant, client: Registered, alice: User, usage: str, sent: dict[str, str], words: str
) -> None:
    update_client(tenant_id=tenant.pk, client_id=client.client_id, changes={"settings": {"organization_usage": usage}})
    answer = log_in(tenant, client, **sent)
    assert outcome(answer) == (400, {"error": "invalid_request", "error_description": words})
    assert not SignIn.objects.of(tenant.pk).exists()


# --- The address of the user ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("auth_method", "is_trusted", "seen"),
    [("client_secret_post", True, "198.51.100.7"), ("client_secret_post", False, "192.0.2.1"), ("none", True, "192.0.2.1")],
)
def test_a_forwarded_address_is_accepted_only_from_a_trusted_client_that_authenticated(
    tenant: Tenant, auth_method: str, is_trusted: bool, seen: str
) -> None:
    settings = {"is_token_endpoint_ip_header_trusted": is_trusted}
    client = web_client(tenant, grant_types=GRANTS, token_endpoint_auth_method=auth_method, settings=settings)
    people = create_connection(tenant_id=tenant.pk, name="people", strategy="database", enabled_clients=[client.client_id])
    alice = make_user(connection=people, email="alice@example.test", password=PASSWORD)
    answer = log_in(tenant, client, grant_type=REALM_GRANT, realm="people", headers={"auth0-forwarded-for": "198.51.100.7"})
    assert answer.status == 200
    alice.refresh_from_db()
    assert alice.last_ip == seen


def test_an_invalid_forwarded_address_does_not_prevent_a_login(tenant: Tenant) -> None:
    client = web_client(tenant, grant_types=GRANTS, settings={"is_token_endpoint_ip_header_trusted": True})
    people = create_connection(tenant_id=tenant.pk, name="people", strategy="database", enabled_clients=[client.client_id])
    make_user(connection=people, email="alice@example.test", password=PASSWORD)
    answer = log_in(tenant, client, grant_type=REALM_GRANT, realm="people", headers={"auth0-forwarded-for": "x" * 300})
    assert answer.status == 200


# --- Answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, {"grant_type": REALM_GRANT, "realm": "people"}])
def test_the_right_password_gets_tokens(tenant: Tenant, client: Registered, alice: User, changes: dict[str, str]) -> None:
    answer = log_in(tenant, client, scope="openid email offline_access", **changes)
    members = answer.json()
    assert answer.status == 200
    assert members.keys() == {"access_token", "token_type", "expires_in", "scope", "id_token", "refresh_token"}
    claims = decoded(members["id_token"])[1]
    assert (claims["sub"], claims["email"], claims["amr"]) == (alice.user_id, "alice@example.test", ["pwd"])
    assert "sid" not in claims
    assert read_profile(tenant, members["access_token"]).json()["sub"] == alice.user_id
    assert ask_token(tenant, refresh_form(client, members["refresh_token"])).status == 200


def test_a_request_without_a_scope_gets_every_scope_of_the_api(tenant: Tenant, client: Registered, alice: User) -> None:
    scopes = [{"value": "read", "description": ""}, {"value": "write", "description": ""}]
    create_api_resource(tenant_id=tenant.pk, identifier=API, scopes=scopes)
    members = log_in(tenant, client, audience=API).json()
    claims = decoded(members["access_token"])[1]
    assert (members["scope"], claims["aud"], claims["sub"], claims["gty"]) == ("read write", API, alice.user_id, "password")
    assert "id_token" not in members


def test_the_password_is_not_logged_and_not_shown_by_repr(
    tenant: Tenant, client: Registered, alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG"):
        log_in(tenant, client, password="canary-password-nobody-may-see")
        log_in(tenant, client)
    assert PASSWORD not in caplog.text
    assert "canary-password" not in caplog.text
    assert "canary-password" not in repr(SignIn.objects.of(tenant.pk).values())


def test_the_management_interface_accepts_the_password_grants_for_a_new_client() -> None:
    body = ClientToCreate(data={"name": "Legacy", "grant_types": list(GRANTS)})
    assert body.is_valid(), body.errors


# --- Other requests ---------------------------------------------------------------------------------------------------


def test_logins_that_wait_for_their_hashes_do_not_delay_other_requests(tenant: Tenant, client: Registered, alice: User) -> None:
    is_over, hashing, answers = threading.Event(), _threads(), list[Received]()
    blockers = [hashing.submit(is_over.wait) for _ in range(hashing._max_workers)]
    logins = [threading.Thread(target=log_in, args=(tenant, client), kwargs={"username": f"user-{number}"}) for number in range(12)]
    other = threading.Thread(target=lambda: answers.append(ask_token(tenant, refresh_form(client, "made-up"))))
    try:
        for login in logins:
            login.start()
        eventually(lambda: hashing._work_queue.qsize() >= 4)
        other.start()
        other.join(timeout=20)
        assert [answer.status for answer in answers] == [403]
        assert all(login.is_alive() for login in logins)
    finally:
        is_over.set()
        for thread in (*logins, other):
            thread.join()
    assert all(blocker.result() for blocker in blockers)
