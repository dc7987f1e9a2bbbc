"""A client reads, replaces and deletes its registration with its token (RFC 7592). Requests with other tokens are refused."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.models import AdministrativeLine, Client, ClientCredential
from authapi.protocols.oauth.registration.metadata import registration_of
from authapi.services.clients import revoke_client, update_client
from authapi.services.registered_clients import Registration, end_registration
from identity.models import Tenant
from identity.services.connections import update_connection
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import ask_token
from tests.authapi.browser import Browser
from tests.authapi.login.conftest import Login
from tests.authapi.memory import forget_all
from tests.authapi.protocols.registration.conftest import CALLBACK, Door, open_registration
from tests.authapi.protocols.registration.test_registering import key_set, stored
from tests.factories.sign_in import people, person


def test_a_registration_is_read_with_its_token_and_shows_no_secret(door: Door) -> None:
    made = door.register()
    read = door.manage("GET")
    assert read.status == 200
    assert read.headers["cache-control"] == "no-store"
    assert read.json() == {name: value for name, value in made.items() if not name.startswith("client_secret")}


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_request_without_the_token_of_the_client_gets_no_information(door: Door, method: str) -> None:
    foreign = door.register()["registration_access_token"]
    door.register()
    for changes in (
        {"token": "guess"},
        {"token": foreign},
        {"token": "", "client_id": ""},
        {"client_id": "unknown"},
        {"client_id": "a\x00"},
    ):
        answer = door.manage(method, **changes)
        assert (answer.status, answer.json()["error"]) == (401, "invalid_token")
        assert answer.json()["error_description"] == "The registration access token does not belong to this client."
    assert Client.objects.of(door.tenant.pk).count() == 2


def test_the_token_is_unknown_at_another_tenant(door: Door) -> None:
    door.register()
    name = f"{door.tenant.pk}-b"
    other = create_tenant(tenant_id=name, name=name, host=f"{name}.example.test")
    open_registration(other)
    assert Door(other, answer=door.answer).manage("GET").status == 401


def test_a_put_replaces_the_whole_registration_and_renews_the_token(door: Door) -> None:
    made = door.register(logo_uri="https://app.example.test/logo.png", grant_types=["authorization_code", "refresh_token"])
    changed = door.replace(client_name="Movies", redirect_uris=["https://app.example.test/new"])
    assert changed.status == 200, changed.body
    answer = changed.json()
    assert (answer["client_name"], answer["redirect_uris"], answer["grant_types"]) == (
        "Movies", ["https://app.example.test/new"], ["authorization_code"],
    )  # fmt: skip
    assert "logo_uri" not in answer
    assert "client_secret" not in answer
    assert stored(door).secret_matches(made["client_secret"])
    assert door.manage("GET").status == 401
    assert door.manage("GET", token=answer["registration_access_token"]).json()["client_name"] == "Movies"
    assert AdministrativeLine.objects.of(door.tenant.pk).latest("created_at").description == "Change a client that registered itself"


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": None},
        {"client_id": "another"},
        {"client_secret": "chosen"},
        {"registration_access_token": "x"},
        {"registration_client_uri": "x"},
        {"client_id_issued_at": 1},
        {"grant_types": ["password"]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_refused_replacement_changes_nothing(door: Door, changes: dict[str, Any]) -> None:
    door.register()
    answer = door.replace(client_name="Movies", **changes)
    assert (answer.status, answer.json()["error"]) == (400, "invalid_client_metadata")
    assert door.manage("GET").json()["client_name"] == "Films"


def test_a_replacement_may_contain_the_current_secret(door: Door) -> None:
    assert door.replace(client_secret=door.register()["client_secret"]).status == 200


def test_a_client_that_becomes_confidential_gets_a_secret(door: Door) -> None:
    door.register(token_endpoint_auth_method="none")
    answer = door.replace(token_endpoint_auth_method="client_secret_post").json()
    form = {"grant_type": "authorization_code", "code": "x", "client_id": answer["client_id"], "client_secret": answer["client_secret"]}
    forget_all()
    assert ask_token(door.tenant, form).json()["error"] == "invalid_grant"


def test_a_client_with_hs256_id_tokens_gets_a_new_secret_that_the_service_can_decrypt(door: Door) -> None:
    made = door.register()
    answer = door.replace(id_token_signed_response_alg="HS256").json()
    assert answer["client_secret"] != made["client_secret"]
    assert stored(door).client_secret == answer["client_secret"]


def test_tokens_stay_valid_if_a_replacement_of_keys_keeps_the_current_key(door: Door) -> None:
    method: Any = {"token_endpoint_auth_method": "private_key_jwt"}
    door.register(**method, jwks=key_set("one"))
    before = stored(door).auth_version
    door.answer = door.replace(**method, jwks={"keys": [*key_set("one")["keys"], *key_set("two")["keys"]]}).json()
    assert sorted(key["kid"] for key in door.answer["jwks"]["keys"]) == ["one", "two"]
    assert stored(door).auth_version == before
    door.answer = door.replace(**method, jwks=key_set("two")).json()
    assert [key["kid"] for key in door.answer["jwks"]["keys"]] == ["two"]
    assert stored(door).auth_version > before
    door.answer = door.replace().json()
    assert "jwks" not in door.answer
    assert not ClientCredential.objects.of(door.tenant.pk).exists()


def test_a_replacement_keeps_settings_made_by_an_administrator(door: Door) -> None:
    door.register()
    settings = {"description": "Checked", "compliance_level": "none"}
    update_client(tenant_id=door.tenant.pk, client_id=door.answer["client_id"], changes={"settings": settings})
    door.replace()
    assert {name: stored(door).settings[name] for name in settings} == settings


@pytest.mark.parametrize("how", ["made first party", "revoked", "cut off from its registration"])
def test_a_revoked_or_first_party_client_can_no_longer_manage_itself(door: Door, how: str) -> None:
    named = {"tenant_id": door.tenant.pk, "client_id": door.register()["client_id"]}
    match how:
        case "made first party":
            update_client(**named, changes={"is_first_party": True})
        case "revoked":
            revoke_client(**named)
        case _:
            end_registration(**named)
    assert [door.manage(method).status for method in ("GET", "DELETE")] == [401, 401]
    assert door.replace(redirect_uris=["https://evil.example/"]).status == 401
    assert stored(door).redirect_uris == CALLBACK


def test_deleting_a_client_deletes_its_token(door: Door) -> None:
    door.register()
    answer = door.manage("DELETE")
    assert (answer.status, answer.body) == (204, b"")
    assert not Client.objects.of(door.tenant.pk).exists()
    assert door.manage("GET").status == 401
    assert AdministrativeLine.objects.of(door.tenant.pk).latest("created_at").description == "Delete a client that registered itself"


# --- Logins at a self-registered client -------------------------------------------------------------------------------


@pytest.fixture
def login(door: Door) -> Login:
    door.register(client_name="Bank", token_endpoint_auth_method="none")
    connection = people(door.tenant)
    return Login(door.tenant, stored(door), connection, person(connection), Browser(door.tenant))


def asked(login: Login) -> Any:
    return login.ask(code_challenge="E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", code_challenge_method="S256")


def test_a_client_that_becomes_first_party_during_its_replacement_is_not_changed(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    door.register()

    def read(members: Any) -> Registration:
        update_client(tenant_id=door.tenant.pk, client_id=door.answer["client_id"], changes={"is_first_party": True})
        return registration_of(members)

    monkeypatch.setattr("authapi.views.registration.registration_of", read)
    assert door.replace(client_name="Movies", redirect_uris=["https://elsewhere.example.test/"]).status == 401
    assert (stored(door).name, stored(door).redirect_uris) == ("Films", CALLBACK)


def test_users_of_a_connection_that_is_not_domain_wide_cannot_log_in(login: Login) -> None:
    assert "No connection is enabled" in asked(login).answer["error_description"]


def test_users_are_warned_of_an_application_with_an_unverified_name(login: Login) -> None:
    update_connection(tenant_id=login.tenant.pk, connection_id=login.connection.pk, changes={"is_domain_connection": True})
    page = login.browser.follow(login.log_in(asked(login)))
    for text in ("Bank", "registered itself", "app.example.test"):
        assert text in page.text
    assert "code" in login.browser.submit(page, answer="allow").answer


def test_other_clients_do_not_get_a_domain_wide_connection(tenant: Tenant, login: Login) -> None:
    update_connection(tenant_id=login.tenant.pk, connection_id=login.connection.pk, changes={"is_domain_connection": True})
    Client.objects.of(tenant.pk).update(registration_source="manual")
    forget_all()
    assert "No connection is enabled" in asked(login).answer["error_description"]
