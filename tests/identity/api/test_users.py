"""The endpoints for users of the management interface: creating, reading, changing and deleting users."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from events.models import Event
from identity.models import Connection, PasswordCredential, Tenant, User
from tests.factories.identity import make_connection, make_user
from tests.management import Management, segment

PASSWORD = "Correct-horse-7"


def path_of(user: User) -> str:
    return f"users/{segment(user.user_id)}"


def stored(tenant: Tenant, user_id: str) -> User:
    return User.objects.of(tenant.pk).get(user_id=user_id)


def test_a_created_user_is_returned_in_full_and_can_be_read(api: Management, database_connection: Connection) -> None:
    answer = api.post("users", {"connection": "people", "email": "ada@example.test", "password": PASSWORD})
    assert answer.status == 201
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    body = answer.json
    assert re.fullmatch(r"database\|[0-9a-f]{24}", body["user_id"])
    times = {name: body.pop(name) for name in ("created_at", "updated_at")}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time) for time in times.values())
    assert body == {
        "user_id": body["user_id"],
        "email": "ada@example.test",
        "email_verified": False,
        "name": "ada@example.test",
        "nickname": "ada",
        "identities": [{"connection": "people", "user_id": body["user_id"].partition("|")[2], "provider": "database", "isSocial": False}],
    }
    assert api.get(f"users/{segment(body['user_id'])}").json == body | times


def test_a_request_may_set_the_id_of_a_new_user_but_not_an_existing_id(api: Management, database_connection: Connection) -> None:
    body = {"connection": "people", "email": "ada@example.test", "password": PASSWORD, "user_id": "ada/1 2".replace(" ", "-")}
    assert api.post("users", body).json["user_id"] == "database|ada/1-2"
    again = api.post("users", body | {"email": "other@example.test"})
    assert (again.status, again.json) == (
        409,
        {"statusCode": 409, "error": "Conflict", "message": "The user already exists.", "errorCode": "database_idp_error"},
    )


def test_an_email_that_differs_from_an_existing_one_only_in_case_is_refused(api: Management, ada: User) -> None:
    assert api.post("users", {"connection": "people", "email": "ADA@example.test", "password": PASSWORD}).status == 409


def test_the_password_is_stored_hashed_and_never_returned(api: Management, tenant: Tenant, database_connection: Connection) -> None:
    answer = api.post("users", {"connection": "people", "email": "ada@example.test", "password": PASSWORD})
    assert PASSWORD.encode() not in answer.body
    credential = PasswordCredential.objects.get(user=stored(tenant, answer.json["user_id"]))
    assert PASSWORD not in credential.password_hash
    assert "password" not in api.get(f"users/{segment(answer.json['user_id'])}").json
    assert not any(PASSWORD.encode() in bytes(event.body) for event in Event.objects.filter(tenant_id=tenant.pk))


def test_the_refusal_of_a_weak_password_has_the_expected_text_without_the_password(
    api: Management, database_connection: Connection
) -> None:
    answer = api.post("users", {"connection": "people", "email": "ada@example.test", "password": "aaaaaaaa"})
    assert answer.status == 400
    assert answer.json["message"].startswith("PasswordStrengthError")
    assert "aaaaaaaa" not in answer.json["message"]


def test_a_database_user_requires_a_password_and_other_users_cannot_have_one(
    api: Management, tenant: Tenant, database_connection: Connection
) -> None:
    missing = api.post("users", {"connection": "people", "email": "ada@example.test"})
    assert (missing.status, missing.json["errorCode"]) == (400, "invalid_body")
    assert missing.json["message"] == "Payload validation error: 'Missing required property' on property password"
    make_connection(tenant_id=tenant.pk, name="mail", strategy="email")
    assert api.post("users", {"connection": "mail", "email": "ada@example.test", "password": PASSWORD}).status == 400
    assert api.post("users", {"connection": "mail", "email": "ada@example.test"}).status == 201


def test_a_user_of_an_unknown_connection_is_refused(api: Management) -> None:
    answer = api.post("users", {"connection": "nowhere", "email": "ada@example.test", "password": PASSWORD})
    assert (answer.status, answer.json["errorCode"]) == (400, "inexistent_connection")


def test_a_user_name_requires_a_connection_with_user_names(api: Management, tenant: Tenant, database_connection: Connection) -> None:
    make_connection(tenant_id=tenant.pk, name="named", options={"requires_username": True})
    body = {"email": "ada@example.test", "username": "ada", "password": PASSWORD}
    assert api.post("users", body | {"connection": "people"}).status == 400
    assert api.post("users", body | {"connection": "named"}).json["username"] == "ada"


def test_a_change_affects_only_the_sent_members(api: Management, ada: User) -> None:
    changed = api.patch(path_of(ada), {"given_name": "Ada", "blocked": True, "picture": "https://pictures.example.test/a.png"})
    assert changed.status == 200
    assert changed.json["given_name"] == "Ada"
    assert changed.json["blocked"] is True
    assert changed.json["email"] == "ada@example.test"
    assert api.patch(path_of(ada), {"given_name": None}).json.keys() & {"given_name", "picture"} == {"picture"}


def test_metadata_is_merged_at_the_first_level_and_null_removes_a_key(api: Management, ada: User) -> None:
    api.patch(path_of(ada), {"user_metadata": {"a": {"x": 1}, "b": 2, "c": 3}})
    merged = api.patch(path_of(ada), {"user_metadata": {"a": {"y": 1}, "b": None}})
    assert merged.json["user_metadata"] == {"a": {"y": 1}, "c": 3}
    assert "user_metadata" not in api.patch(path_of(ada), {"user_metadata": {}}).json


def test_an_empty_change_succeeds_and_records_no_event(api: Management, tenant: Tenant, ada: User) -> None:
    before = Event.objects.filter(tenant_id=tenant.pk).count()
    answer = api.patch(path_of(ada), {})
    assert (answer.status, answer.json["user_id"]) == (200, ada.user_id)
    assert api.patch(path_of(ada), {"verify_email": False}).json["updated_at"] == answer.json["updated_at"]
    assert Event.objects.filter(tenant_id=tenant.pk).count() == before


def test_a_new_email_is_unverified_unless_the_request_says_otherwise(api: Management, ada: User) -> None:
    assert api.patch(path_of(ada), {"email_verified": True}).json["email_verified"] is True
    assert api.patch(path_of(ada), {"email": "a@example.test"}).json["email_verified"] is False
    assert api.patch(path_of(ada), {"email": "b@example.test", "email_verified": True}).json["email_verified"] is True


def test_the_email_of_another_user_gets_a_conflict_and_changes_nothing(api: Management, tenant: Tenant, ada: User) -> None:
    other = make_user(connection=ada.connection)
    answer = api.patch(path_of(other), {"email": "Ada@example.test", "given_name": "Other"})
    assert (answer.status, answer.json["message"]) == (409, "The user already exists.")
    assert stored(tenant, other.user_id).given_name is None


@pytest.mark.parametrize("strategy", ["samlp", "sms"])
def test_the_verification_of_an_address_from_a_provider_cannot_be_changed(api: Management, tenant: Tenant, strategy: str) -> None:
    connection = make_connection(tenant_id=tenant.pk, strategy=strategy)
    user = make_user(connection=connection)
    assert api.patch(path_of(user), {"email_verified": True}).status == 400


def test_a_request_can_name_only_the_connection_of_the_primary_identity(api: Management, ada: User) -> None:
    assert api.patch(path_of(ada), {"connection": "people", "email": "new@example.test"}).json["email"] == "new@example.test"
    refused = api.patch(path_of(ada), {"connection": "other", "email": "newer@example.test"})
    assert (refused.status, refused.json["errorCode"]) == (400, "operation_not_supported")


def test_a_second_deletion_is_not_an_error(api: Management, tenant: Tenant, ada: User) -> None:
    for _ in range(2):
        answer = api.delete(path_of(ada), {"ignored": True})
        assert (answer.status, answer.body) == (204, b"")
    gone = api.get(path_of(ada))
    assert (gone.status, gone.json) == (
        404,
        {"statusCode": 404, "error": "Not Found", "message": "The user does not exist.", "errorCode": "inexistent_user"},
    )
    assert api.patch(path_of(ada), {"name": "x"}).json["errorCode"] == "inexistent_user"


def test_an_id_without_a_provider_is_not_a_user_id(api: Management) -> None:
    for answer in (api.get("users/nobody"), api.patch("users/nobody", {}), api.delete("users/nobody")):
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_uri")


def test_fields_are_included_or_excluded_and_unknown_fields_are_refused(api: Management, ada: User) -> None:
    assert api.get(path_of(ada), {"fields": "email,user_id"}).json == {"email": "ada@example.test", "user_id": ada.user_id}
    dropped = api.get(path_of(ada), {"fields": "email,identities", "include_fields": "false"}).json
    assert "user_id" in dropped
    assert not dropped.keys() & {"email", "identities"}
    refused = api.get(path_of(ada), {"fields": "email,password"})
    assert (refused.status, refused.json["errorCode"]) == (400, "invalid_query_string")


def test_users_are_found_by_their_whole_email_in_upper_and_lower_case(api: Management, tenant: Tenant, ada: User) -> None:
    mail = make_connection(tenant_id=tenant.pk, strategy="email")
    twin = make_user(connection=mail, email="Ada@Example.test")
    make_user(connection=mail, email="ada@example.test.example")
    found = api.get("users-by-email", {"email": "ADA@example.TEST", "fields": "user_id"}).json
    assert found == [{"user_id": ada.user_id}, {"user_id": twin.user_id}]
    assert api.get("users-by-email", {"email": "nobody@example.test"}).json == []
    assert api.get("users-by-email").json["errorCode"] == "invalid_query_string"


def test_a_separate_scope_allows_only_changes_of_app_metadata(tenant: Tenant, ada: User) -> None:
    narrow = Management(tenant, scope="update:users_app_metadata")
    assert narrow.patch(path_of(ada), {"app_metadata": {"plan": "full"}}).json["app_metadata"] == {"plan": "full"}
    refused = narrow.patch(path_of(ada), {"app_metadata": {}, "name": "x"})
    assert (refused.status, refused.json["errorCode"]) == (403, "insufficient_scope")
    assert refused.json["message"] == "Insufficient scope, expected any of: update:users"


def test_a_change_is_refused_and_undone_if_its_event_would_be_too_large(api: Management, tenant: Tenant, ada: User) -> None:
    answer = api.patch(path_of(ada), {"user_metadata": {"text": "x" * 600_000}})
    assert answer.status == 413
    assert answer.json["statusCode"] == 413
    assert stored(tenant, ada.user_id).user_metadata == {}


def test_changing_a_user_needs_at_most_eleven_sql_statements(api: Management, ada: User) -> None:
    api.patch(path_of(ada), {"given_name": "first"})
    with CaptureQueriesContext(database) as queries:
        assert api.patch(path_of(ada), {"given_name": "second"}).status == 200
    # One of these SQL statements writes the administrative line, which clients read at /logs.
    assert len(queries) <= 11, [query["sql"] for query in queries]


def test_a_list_needs_the_same_number_of_statements_for_any_length(api: Management, tenant: Tenant, ada: User) -> None:
    def statements() -> int:
        with CaptureQueriesContext(database) as queries:
            assert api.get("users").status == 200
        # Do not count reads of clients and hosts: they are cached for a second, so the number of reads varies.
        remembered = ("authapi_", "identity_customdomain", 'FROM "identity_tenant"')
        return sum(not any(name in query["sql"] for name in remembered) for query in queries)

    few = statements()
    others = make_connection(tenant_id=tenant.pk, strategy="email")
    for _ in range(5):
        secondary = make_user(connection=others)
        primary = make_user(connection=ada.connection)
        body: dict[str, Any] = {"provider": "email", "user_id": secondary.identifier}
        assert api.post(f"{path_of(primary)}/identities", body).status == 201
    assert statements() == few
