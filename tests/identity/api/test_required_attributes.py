"""The attributes that every user of a database connection must have, if the options of the connection say so."""

from __future__ import annotations

from typing import Any

import pytest

from identity.models import Connection, Tenant
from tests.factories.identity import make_user
from tests.management import Management, segment

PASSWORD = "Correct-horse-7-battery"


def attribute(*, required: bool, status: str = "required") -> dict[str, Any]:
    return {"identifier": {"active": True}, "profile_required": required, "signup": {"status": status}}


@pytest.fixture
def connection_id(api: Management) -> str:
    """Create a connection whose users must have an email address and a phone number and may have a user name. Return its id."""
    attributes = {
        "email": attribute(required=True),
        "phone_number": attribute(required=True),
        "username": attribute(required=False, status="optional"),
    }
    made = api.post("connections", {"name": "strict", "strategy": "database", "options": {"attributes": attributes}})
    assert made.status == 201, made.json
    return str(made.json["id"])


@pytest.mark.parametrize("missing", ["email", "phone_number"])
def test_a_user_without_a_required_attribute_is_refused(api: Management, connection_id: str, missing: str) -> None:
    whole = {"connection": "strict", "password": PASSWORD, "email": "ada@example.test", "phone_number": "+15550100", "username": "ada"}
    answer = api.post("users", {name: value for name, value in whole.items() if name != missing})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert missing in answer.json["message"]
    assert api.get("users").json == []
    assert api.post("users", {name: value for name, value in whole.items() if name != "username"}).status == 201


def test_a_required_attribute_cannot_be_removed(api: Management, tenant: Tenant, connection_id: str) -> None:
    connection = Connection.objects.of(tenant.pk).get(pk=connection_id)
    user = make_user(connection=connection, email="ada@example.test", phone_number="+15550100", username="ada")
    path = f"users/{segment(user.user_id)}"
    for taken in ({"email": None}, {"phone_number": None}):
        assert api.patch(path, taken).json["errorCode"] == "invalid_body"
    assert (api.get(path).json["email"], api.get(path).json["phone_number"]) == ("ada@example.test", "+15550100")
    assert api.patch(path, {"username": None}).status == 200
    old = make_user(connection=connection, email="old@example.test")
    assert api.patch(f"users/{segment(old.user_id)}", {"name": "Old"}).status == 200


REFUSED = [
    ({"attributes": {"email": {}}, "requires_username": True}, "Cannot set both options.attributes and options.requires_username"),
    ({"attributes": {"email": {}}, "validation": {"username": {"min": 1}}}, "Cannot set both options.attributes and options.validation"),
    ({"attributes": {"email": {"identifier": {"active": False}}}}, "attributes must contain one active identifier"),
    (
        {"attributes": {"phone_number": attribute(required=True, status="inactive")}},
        "attribute phone_number must also be required on signup",
    ),
    (
        {"attributes": {"email": attribute(required=True), "username": attribute(required=True, status="optional")}},
        "attribute username must also be required on signup",
    ),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_invalid_rules_on_attributes_are_refused_with_the_texts_that_clients_expect(
    api: Management, options: dict[str, Any], message: str
) -> None:
    answer = api.post("connections", {"name": "strict", "strategy": "database", "options": options})
    assert answer.status == 400
    assert answer.json == {"statusCode": 400, "error": "Bad Request", "message": message, "errorCode": "invalid_body"}
    plain = api.post("connections", {"name": "plain", "strategy": "database"}).json
    assert api.patch(f"connections/{plain['id']}", {"options": options}).json["message"] == message
    assert api.get(f"connections/{plain['id']}").json == plain


def test_the_body_member_verify_phone_number_is_accepted_and_not_stored(api: Management, database_connection: Connection) -> None:
    path = f"users/{segment(make_user(connection=database_connection).user_id)}"
    changed = api.patch(path, {"phone_number": "+15550199", "verify_phone_number": True})
    assert (changed.status, changed.json["phone_number"]) == (200, "+15550199")
    assert "verify_phone_number" not in changed.json
    before = api.get(path).json
    assert api.patch(path, {"verify_phone_number": True}).json == before
    assert api.patch(path, {"verify_phone_number": "yes"}).json["errorCode"] == "invalid_body"
