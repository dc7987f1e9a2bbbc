"""Secrets in the options of connections: clients can write, replace and remove them, and can never read them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import connection as database
from django.urls import reverse
from pytest_django.fixtures import Settings

from events.models import Event, Mark
from foundation.secrets.vault import SecretUnreadable
from identity.models import AuditEntry, Connection, Tenant
from identity.models.connections import known_strategies
from tests.events.log_reading import numbered
from tests.factories.admin import browser_of, new_staff
from tests.factories.models.identity import TenantFactory
from tests.factories.option_secrets import options_with_secrets
from tests.management import Management

SMS = {
    "from": "+123",
    "twilio_token": "twilio-secret",
    "gateway_authentication": {"method": "bearer", "audience": "a", "secret": "gateway-secret"},
    "homemade": {"pin": 4711},
}


@pytest.fixture
def other_tenant(tenant: Tenant) -> Tenant:
    tenant_id = f"{tenant.pk}-other"
    return TenantFactory.create(id=tenant_id, name=tenant_id, host=f"{tenant_id}.example.test")


def row(tenant: Tenant, identifier: str) -> Connection:
    return Connection.objects.of(tenant.pk).get(pk=identifier)


def row_text(identifier: str) -> str:
    with database.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(c)::text FROM identity_connection c WHERE id = %s", [identifier])
        return str(cursor.fetchone()[0])


def made(api: Management, strategy: str, options: dict[str, Any], *, name: str = "here") -> str:
    answer = api.post("connections", {"name": name, "strategy": strategy, "options": options})
    assert answer.status == 201, answer.body
    return str(answer.json["id"])


def patched(api: Management, identifier: str, options: dict[str, Any] | None) -> dict[str, Any]:
    answer = api.patch(f"connections/{identifier}", {"options": options})
    assert answer.status == 200, answer.body
    return dict(answer.json.get("options", {}))


@pytest.mark.parametrize("strategy", known_strategies())
def test_no_secret_of_a_strategy_is_stored_or_shown_in_plain_text(tenant: Tenant, strategy: str) -> None:
    api = Management(tenant)
    is_database = strategy == "database"
    options, hidden = options_with_secrets(strategy, is_database=is_database)
    changed, later = options_with_secrets(strategy, is_database=is_database)
    created = api.post("connections", {"name": "here", "strategy": strategy, "options": options})
    path = f"connections/{created.json['id']}"
    page = reverse("admin:identity_connection_change", args=(quote(created.json["id"]),))
    browser = browser_of(new_staff(tenant))
    texts = {
        "row": row_text(created.json["id"]),
        "answers": b"".join(
            answer.body for answer in (created, api.get(path), api.get("connections"), api.patch(path, {"options": changed}))
        ).decode(),
        "row after": row_text(created.json["id"]),
        "page": browser.get(page).content.decode() + browser.get(reverse("admin:identity_connection_changelist")).content.decode(),
        "events": json.dumps(numbered(tenant.pk)),
        "audit": json.dumps(list(AuditEntry.objects.filter(tenant_id=tenant.pk).values("before", "after", "facts"))),
    }
    stored = row(tenant, created.json["id"])

    assert created.status == 201
    assert len(hidden) > 5
    for where, text in texts.items():
        assert [name for name, value in {**hidden, **later}.items() if value in text] == [], where
    assert stored.open_options() | changed == stored.open_options()


def test_a_change_of_the_options_keeps_sealed_members_that_the_request_does_not_name(tenant: Tenant) -> None:
    api = Management(tenant)
    identifier = made(api, "sms", SMS)

    shown = patched(api, identifier, {"from": "+456", "gateway_authentication": {"method": "basic", "audience": "a"}})

    assert shown == {"from": "+456", "gateway_authentication": {"method": "basic", "audience": "a"}}
    assert row(tenant, identifier).open_options() == {
        **SMS,
        "from": "+456",
        "gateway_authentication": {"method": "basic", "audience": "a", "secret": "gateway-secret"},
    }


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        ({"twilio_token": None, "gateway_authentication": {"method": "bearer"}}, {"gateway_authentication/secret", "homemade"}),
        ({"gateway_authentication": {"secret": None}}, {"twilio_token", "homemade"}),
        ({"gateway_authentication": None}, {"twilio_token", "homemade"}),
        # A request replaces all options that a client can read. So a request without the object `gateway_authentication` removes it.
        ({"from": "+1"}, {"twilio_token", "homemade"}),
        ({"gateway_authentication": {}, "homemade": None}, {"twilio_token", "gateway_authentication/secret"}),
        ({"gateway_authentication": "text"}, {"twilio_token", "homemade", "gateway_authentication"}),
    ],
)
def test_a_sealed_member_is_removed_by_null_or_with_its_object(tenant: Tenant, sent: dict[str, Any], left: set[str]) -> None:
    api = Management(tenant)
    identifier = made(api, "sms", SMS)

    patched(api, identifier, sent)

    assert set(row(tenant, identifier).sealed_options) == left


def test_setting_the_options_to_null_removes_the_sealed_members_too(tenant: Tenant) -> None:
    api = Management(tenant)
    identifier = made(api, "sms", SMS)
    assert patched(api, identifier, {}) == {}
    assert set(row(tenant, identifier).sealed_options) == {"twilio_token", "homemade"}

    assert patched(api, identifier, None) == {}
    assert (row(tenant, identifier).options, row(tenant, identifier).sealed_options) == ({}, {})


def test_a_change_of_only_a_secret_records_an_event_without_the_secret(tenant: Tenant) -> None:
    api = Management(tenant)
    identifier = made(api, "oidc", {"client_id": "c", "client_secret": "first-secret"})
    events = len(numbered(tenant.pk))

    patched(api, identifier, {"client_id": "c", "client_secret": "second-secret"})

    updated = numbered(tenant.pk)[events:]
    assert [event["type"] for event in updated] == ["connection.updated"]
    assert updated[0]["data"]["object"] == updated[0]["data"]["previous_object"]
    assert b"-secret" not in b"".join(bytes(body) for body in Event.objects.filter(tenant_id=tenant.pk).values_list("body", flat=True))
    assert row(tenant, identifier).secret_option("client_secret") == "second-secret"
    entry = AuditEntry.objects.filter(object_id=identifier).latest("id")
    assert (entry.before, entry.after) == ({"sealed_options": "(hidden)"}, {"sealed_options": "(hidden)"})


def test_sending_a_secret_again_unchanged_changes_nothing(tenant: Tenant) -> None:
    api = Management(tenant)
    identifier = made(api, "sms", SMS)
    before, events, entries = row_text(identifier), len(numbered(tenant.pk)), AuditEntry.objects.filter(object_id=identifier).count()

    patched(api, identifier, SMS)
    patched(api, identifier, {"from": "+123", "gateway_authentication": {"method": "bearer", "audience": "a"}})

    assert row(tenant, identifier).sealed_options == json.loads(before)["sealed_options"]
    assert len(numbered(tenant.pk)) == events
    assert AuditEntry.objects.filter(object_id=identifier).count() == entries
    assert not Mark.objects.filter(row_key=identifier).exists()


def test_a_change_from_1_to_true_is_stored_although_python_considers_them_equal(tenant: Tenant) -> None:
    api = Management(tenant)
    identifier = made(api, "email", {"unknown": {"a": 1}})
    patched(api, identifier, {"unknown": {"a": True}})
    assert row(tenant, identifier).open_options()["unknown"]["a"] is True


@pytest.mark.parametrize(
    "moved",
    [
        {"issuer": "https://elsewhere.example.test"},
        {"issuer": "https://idp.example.test", "token_endpoint": "https://elsewhere.example.test/token"},
        {"issuer": "https://idp.example.test", "oidc_metadata": {"token_endpoint": "https://elsewhere.example.test/token"}},
        {},
    ],
)
def test_a_request_that_changes_a_url_must_send_the_secret_again(tenant: Tenant, moved: dict[str, Any]) -> None:
    api = Management(tenant)
    idp = {"client_id": "c", "issuer": "https://idp.example.test"}
    identifier = made(api, "oidc", {**idp, "client_secret": "very-secret"})

    refused = api.patch(f"connections/{identifier}", {"options": {"client_id": "c", **moved}})

    assert (refused.status, refused.json["errorCode"]) == (400, "invalid_body")
    assert "send client_secret again" in refused.json["message"]
    assert row(tenant, identifier).options == idp
    patched(api, identifier, {"client_id": "c", **moved, "client_secret": None})
    assert row(tenant, identifier).sealed_options == {}


def test_a_request_that_changes_a_sealed_url_must_send_the_secret_again(tenant: Tenant) -> None:
    api = Management(tenant)
    secret_gateway = {"gateway_url": "https://sms.example.test/?key=1", "gateway_authentication": {"method": "bearer", "secret": "s"}}
    identifier = made(api, "sms", secret_gateway)
    assert patched(api, identifier, {"gateway_authentication": {"method": "bearer"}}) == {"gateway_authentication": {"method": "bearer"}}

    moved = {"gateway_url": "https://elsewhere.example.test/?key=1", "gateway_authentication": {"method": "bearer"}}
    assert api.patch(f"connections/{identifier}", {"options": moved}).status == 400


def test_the_refusal_does_not_repeat_the_refused_value(tenant: Tenant) -> None:
    api = Management(tenant)
    odd: list[dict[str, Any]] = [
        {"client_secret": "refused-secret"},
        {"client_id": "c", "client_secret": {"refused-secret": "refused-secret\x00"}},
        {"client_id": "c", **{f"refused-secret-{number}": "refused-secret" for number in range(501)}},
    ]
    for options in odd:
        answer = api.post("connections", {"name": "here", "strategy": "oidc", "options": options})
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
        assert b"refused-secret" not in answer.body
    assert api.get("connections").json == []


def test_a_sealed_secret_can_be_opened_only_in_its_tenant_and_connection(tenant: Tenant, other_tenant: Tenant) -> None:
    here, there = Management(tenant), Management(other_tenant)
    options = {"client_id": "c", "client_secret": "very-secret"}
    stolen = row(tenant, made(here, "oidc", options)).sealed_options["client_secret"]
    for owner, identifier, path in (
        (other_tenant, made(there, "oidc", options), "client_secret"),
        (tenant, made(here, "oidc", options, name="second"), "client_secret"),
    ):
        connection = row(owner, identifier)
        connection.sealed_options = {path: stolen}
        with pytest.raises(SecretUnreadable):
            connection.secret_option(path)


def test_a_secret_whose_key_is_lost_blocks_no_change_and_can_be_replaced(tenant: Tenant, settings: Settings) -> None:
    api = Management(tenant)
    identifier = made(api, "oidc", {"client_id": "c", "client_secret": "old-secret"})
    connection = row(tenant, identifier)
    connection.sealed_options = {"client_secret": "gone." + connection.sealed_options["client_secret"].partition(".")[2]}
    connection.save(update_fields=["sealed_options"])

    patched(api, identifier, {"client_id": "d"})
    patched(api, identifier, {"client_id": "d", "client_secret": "new-secret"})

    assert row(tenant, identifier).secret_option("client_secret") == "new-secret"


def test_only_a_changed_secret_is_sealed_with_the_newest_key(tenant: Tenant, settings: Settings) -> None:
    api = Management(tenant)
    identifier = made(api, "oidc", {"client_id": "c", "client_secret": "one"})
    settings.ENCRYPTION_KEYS = {"next": "n" * 40, **settings.ENCRYPTION_KEYS}

    patched(api, identifier, {"client_id": "c", "client_secret": "one"})
    assert not row(tenant, identifier).sealed_options["client_secret"].startswith("next.")
    patched(api, identifier, {"client_id": "c", "client_secret": "two"})
    assert row(tenant, identifier).sealed_options["client_secret"].startswith("next.")


def test_a_secret_that_an_older_version_stored_unencrypted_is_not_shown(tenant: Tenant) -> None:
    api = Management(tenant)
    identifier = made(api, "sms", {"from": "+1"})
    with database.cursor() as cursor:
        cursor.execute("UPDATE identity_connection SET options = %s WHERE id = %s", [json.dumps(SMS), identifier])

    answer = api.patch(f"connections/{identifier}", {"display_name": "New"})

    page = browser_of(new_staff(tenant)).get(reverse("admin:identity_connection_change", args=(quote(identifier),)))
    entries = json.dumps(list(AuditEntry.objects.filter(object_id=identifier).values("before", "after")))
    for text in (answer.body.decode(), page.content.decode(), json.dumps(numbered(tenant.pk)), entries):
        assert "twilio-secret" not in text
        assert "gateway-secret" not in text
