"""The endpoints for connections of the management interface."""

from __future__ import annotations

import re

from identity.models import Connection, Tenant, User
from tests.factories.identity import make_connection, make_user
from tests.management import Management, segment

ODD_BODIES: list[dict[str, object]] = [
    {"name": "a b", "strategy": "email"},
    {"name": "-a", "strategy": "email"},
    {"name": "a", "strategy": "telepathy"},
    {"name": "a", "strategy": "oidc", "options": {"issuer": "https://issuer.example.test"}},
    {"name": "a", "strategy": "database", "show_as_button": True},
    {"name": "a", "strategy": "database", "options": {"attributes": {"email": {}}, "requires_username": True}},
    {"name": "a", "strategy": "database", "options": {"attributes": {"email": {"identifier": {"active": False}}}}},
    {"name": "a", "strategy": "database", "options": {"passwordPolicy": "heroic"}},
    {"name": "a", "strategy": "email", "metadata": {str(number): "x" for number in range(11)}},
    {"name": "a", "strategy": "email", "metadata": {"number": 1}},
    {"name": "a", "strategy": "email", "authentication": {}},
    {"name": "a", "strategy": "email", "id": "con_0123456789abcdef"},
    {"name": "a"},
]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_a_database_connection_starts_with_the_default_options(api: Management) -> None:
    answer = api.post("connections", {"name": "people", "strategy": "database", "options": {"requires_username": True}})
    assert answer.status == 201
    body = answer.json
    assert re.fullmatch(r"con_[A-Za-z0-9]{16}", body["id"])
    assert (body["name"], body["strategy"], body["realms"], body["is_domain_connection"]) == ("people", "database", ["people"], False)
    options = body["options"]
    assert options["requires_username"] is True
    assert options["passwordPolicy"] == "good"
    assert options["mfa"] == {"active": True, "return_enroll_settings": True}
    assert options["strategy_version"] == 2
    assert options["brute_force_protection"] is True
    assert api.get(f"connections/{body['id']}").json == body


def test_an_email_connection_always_has_a_mail_template_with_a_body(api: Management) -> None:
    made = api.post("connections", {"name": "email", "strategy": "email"}).json
    path = f"connections/{made['id']}"
    assert made["options"] == {"email": {"body": ""}}
    mail = {"from": "Acme <login@example.test>", "subject": "Your code", "syntax": "liquid", "body": "<p>{{ code }}</p>"}
    options = {"email": mail, "totp": {"length": 6, "time_step": 180}, "disable_signup": True}
    assert api.patch(path, {"options": options}).json["options"] == options
    assert api.get("connections").json[0]["options"] == options
    without_body = {"email": {"subject": "Your code"}}
    assert api.patch(path, {"options": without_body}).json["options"] == {"email": {"subject": "Your code", "body": ""}}


def test_lists_contain_times_only_if_the_request_selects_the_fields(api: Management, database_connection: Connection) -> None:
    assert api.get("connections").json[0].keys() & {"created_at", "updated_at"} == set()
    assert api.get("connections", {"fields": "id,created_at"}).json[0].keys() == {"id", "created_at"}
    assert {"created_at", "updated_at"} <= api.get(f"connections/{database_connection.pk}").json.keys()


def test_secrets_are_accepted_and_never_returned(api: Management, tenant: Tenant) -> None:
    body = {"name": "corp", "strategy": "oidc", "options": {"client_id": "abc", "client_secret": "very-secret"}}
    answer = api.post("connections", body)
    assert answer.json["options"] == {"client_id": "abc"}
    assert b"very-secret" not in api.get(f"connections/{answer.json['id']}").body
    assert Connection.objects.of(tenant.pk).get(pk=answer.json["id"]).secret_option("client_secret") == "very-secret"


def test_the_name_of_a_connection_is_unique_in_its_tenant(api: Management, database_connection: Connection) -> None:
    answer = api.post("connections", {"name": "people", "strategy": "email"})
    assert (answer.status, answer.json) == (
        409,
        {"statusCode": 409, "error": "Conflict", "message": "A connection with the same name already exists"},
    )


def test_an_invalid_body_creates_no_connection(api: Management) -> None:
    for body in ODD_BODIES:
        answer = api.post("connections", body)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), body
    assert api.get("connections").json == []


def test_changed_options_replace_the_whole_object(api: Management, database_connection: Connection) -> None:
    path = f"connections/{database_connection.pk}"
    changed = api.patch(path, {"options": {"import_mode": True}, "display_name": "People", "metadata": {"a": "b"}})
    assert changed.status == 200
    assert changed.json["options"] == {"import_mode": True}
    assert api.patch(path, {"metadata": {"c": "d"}}).json["metadata"] == {"c": "d"}
    assert api.get(path).json["display_name"] == "People"
    assert api.patch(path, {}).json == api.get(path).json


def test_null_clears_optional_members(api: Management, database_connection: Connection) -> None:
    path = f"connections/{database_connection.pk}"
    api.patch(path, {"display_name": "People", "metadata": {"a": "b"}, "enabled_clients": ["abc"], "authentication": {"active": True}})
    nothing = dict.fromkeys(("display_name", "metadata", "enabled_clients", "authentication", "options", "realms", "is_domain_connection"))
    changed = api.patch(path, nothing)
    assert changed.status == 200
    assert set(changed.json) == {"id", "name", "strategy", "is_domain_connection", "enabled_clients", "created_at", "updated_at"}
    assert changed.json["enabled_clients"] == []


def test_name_and_strategy_cannot_change(api: Management, database_connection: Connection) -> None:
    for field in ("name", "strategy"):
        answer = api.patch(f"connections/{database_connection.pk}", {field: "email"})
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_deleting_a_connection_deletes_its_users_and_can_be_repeated(api: Management, database_connection: Connection, ada: User) -> None:
    first = api.delete(f"connections/{database_connection.pk}")
    assert first.status == 202
    assert TIME.fullmatch(first.json["deleted_at"])
    assert (api.delete(f"connections/{database_connection.pk}").status) == 204
    gone = api.get(f"connections/{database_connection.pk}")
    assert (gone.status, gone.json["errorCode"]) == (404, "inexistent_connection")
    assert gone.json["message"] == "The connection does not exist"
    assert api.get(f"users/{segment(ada.user_id)}").status == 404


def test_lists_can_be_filtered_by_strategy_and_name(api: Management, tenant: Tenant) -> None:
    for name, strategy in (("one", "database"), ("two", "email"), ("three", "sms"), ("four", "samlp")):
        make_connection(tenant_id=tenant.pk, name=name, strategy=strategy)

    def names(query: list[tuple[str, str]]) -> list[str]:
        return [connection["name"] for connection in api.get("connections", query).json]

    assert names([]) == ["one", "two", "three", "four"]
    assert names([("strategy", "email"), ("strategy", "samlp")]) == ["two", "four"]
    assert names([("name", "three")]) == ["three"]
    assert names([("name", "nowhere")]) == []


def test_lists_show_enabled_clients_only_on_request(api: Management, tenant: Tenant) -> None:
    created = api.post("connections", {"name": "people", "strategy": "database", "enabled_clients": ["abc"]}).json
    assert created["enabled_clients"] == ["abc"]
    assert "enabled_clients" not in api.get("connections").json[0]
    assert api.get("connections", {"fields": "enabled_clients"}).json == [{"enabled_clients": ["abc"]}]


def test_deleting_a_connection_unlinks_its_users_from_users_of_other_connections(api: Management, tenant: Tenant, ada: User) -> None:
    mail = make_connection(tenant_id=tenant.pk, strategy="email")
    secondary = make_user(connection=mail)
    api.post(f"users/{segment(ada.user_id)}/identities", {"provider": "email", "user_id": secondary.identifier})
    assert api.delete(f"connections/{mail.pk}").status == 202
    assert len(api.get(f"users/{segment(ada.user_id)}").json["identities"]) == 1


def test_enabled_clients_are_an_empty_array_if_there_are_none(api: Management, database_connection: Connection) -> None:
    made = api.post("connections", {"name": "mail", "strategy": "email"}).json
    assert made["enabled_clients"] == []
    assert api.get(f"connections/{made['id']}").json["enabled_clients"] == []
    assert api.patch(f"connections/{made['id']}", {"display_name": "Mail"}).json["enabled_clients"] == []
    assert api.get("connections", {"fields": "name,enabled_clients", "name": "mail"}).json == [{"name": "mail", "enabled_clients": []}]


def test_a_google_directory_connection_can_be_created_without_client_id_and_client_secret(api: Management) -> None:
    options = {"domain": "example.com", "tenant_domain": "example.com", "ext_groups": True}
    made = api.post("connections", {"name": "google", "strategy": "google-apps", "options": options})
    assert (made.status, made.json["options"]) == (201, options)
