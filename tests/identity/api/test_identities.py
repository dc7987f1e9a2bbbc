"""Linking users, and unlinking identities, over the management interface."""

from __future__ import annotations

from typing import Any

import pytest

from identity.models import Connection, Tenant, User
from tests.factories.identity import make_connection, make_user
from tests.management import Management, segment


@pytest.fixture
def mail(tenant: Tenant) -> Connection:
    return make_connection(tenant_id=tenant.pk, name="mail", strategy="email")


@pytest.fixture
def secondary(mail: Connection) -> User:
    return make_user(connection=mail, email="ada@mail.example.test", user_metadata={"dropped": True}, identifier="a/b|c")


def identities_path(user: User, *rest: str) -> str:
    return "/".join(["users", segment(user.user_id), "identities", *map(segment, rest)])


def expected(ada: User) -> list[dict[str, Any]]:
    return [
        {
            "connection": "people",
            "user_id": ada.identifier,
            "provider": "database",
            "isSocial": False,
            "profileData": {"email": "ada@example.test", "email_verified": False, "name": "ada@example.test", "nickname": "ada"},
        },
        {
            "connection": "mail",
            "user_id": "a/b|c",
            "provider": "email",
            "isSocial": False,
            "profileData": {"email": "ada@mail.example.test", "email_verified": False, "name": "ada@mail.example.test", "nickname": "ada"},
        },
    ]


@pytest.mark.parametrize("sent_id", ["a/b|c", "email|a/b|c"])
def test_linking_returns_all_identities_and_deletes_the_secondary_user(api: Management, ada: User, secondary: User, sent_id: str) -> None:
    answer = api.post(identities_path(ada), {"provider": "email", "user_id": sent_id})
    assert (answer.status, answer.json) == (201, expected(ada))
    assert api.get(f"users/{segment(secondary.user_id)}").status == 404
    assert api.get(f"users/{segment(ada.user_id)}").json["identities"] == expected(ada)


def test_linking_a_linked_user_is_a_conflict(api: Management, ada: User, secondary: User) -> None:
    body = {"provider": "email", "user_id": secondary.identifier}
    assert api.post(identities_path(ada), body).status == 201
    assert api.post(identities_path(ada), body).status == 409


def test_a_user_with_linked_identities_cannot_be_linked_to_another_user(
    api: Management, ada: User, secondary: User, mail: Connection
) -> None:
    third = make_user(connection=mail, email="third@mail.example.test")
    assert api.post(identities_path(secondary), {"provider": "email", "user_id": third.identifier}).status == 201
    answer = api.post(identities_path(ada), {"provider": "email", "user_id": secondary.identifier})
    assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")
    assert len(api.get(f"users/{segment(secondary.user_id)}").json["identities"]) == 2
    assert len(api.get(f"users/{segment(ada.user_id)}").json["identities"]) == 1


def test_the_connection_in_the_request_must_be_the_connection_of_the_secondary_user(
    api: Management, ada: User, secondary: User, mail: Connection
) -> None:
    body = {"provider": "email", "user_id": secondary.identifier}
    assert api.post(identities_path(ada), body | {"connection_id": ada.connection_id}).status == 404
    assert api.post(identities_path(ada), body | {"connection_id": "con_short"}).json["errorCode"] == "invalid_body"
    assert api.post(identities_path(ada), body | {"connection_id": mail.pk}).status == 201


def test_invalid_requests_to_link_users_are_refused(api: Management, ada: User, secondary: User) -> None:
    own = api.post(identities_path(ada), {"provider": "database", "user_id": ada.identifier})
    assert (own.status, own.json["errorCode"]) == (400, "operation_not_supported")
    assert api.post(identities_path(ada), {"provider": "email", "user_id": "nobody"}).status == 404
    assert api.post(identities_path(ada), {"provider": "email"}).json["errorCode"] == "invalid_body"
    assert api.post(identities_path(ada), {"link_with": "token"}).json["errorCode"] == "operation_not_supported"


def test_unlinking_restores_the_secondary_user_without_metadata(api: Management, ada: User, secondary: User) -> None:
    api.post(identities_path(ada), {"provider": "email", "user_id": secondary.identifier})
    answer = api.delete(identities_path(ada, "email", secondary.identifier))
    assert answer.status == 200
    assert [identity["provider"] for identity in answer.json] == ["database"]
    restored = api.get(f"users/{segment(secondary.user_id)}").json
    assert restored["email"] == "ada@mail.example.test"
    assert "user_metadata" not in restored


def test_only_a_linked_identity_can_be_unlinked(api: Management, ada: User, secondary: User) -> None:
    assert api.delete(identities_path(ada, "email", secondary.identifier)).status == 404
    primary = api.delete(identities_path(ada, "database", ada.identifier))
    assert (primary.status, primary.json["errorCode"]) == (400, "operation_not_supported")
    nobody = User(user_id="database|nobody")
    assert api.delete(identities_path(nobody, "email", "x")).json["errorCode"] == "inexistent_user"


def test_unlinking_returns_the_remaining_identities(api: Management, ada: User, secondary: User) -> None:
    path = f"users/{segment(ada.user_id)}"
    api.post(f"{path}/identities", {"provider": secondary.provider, "user_id": secondary.identifier})
    left = api.delete(f"{path}/identities/{secondary.provider}/{segment(secondary.identifier)}")
    assert left.status == 200
    assert [identity["profileData"]["email"] for identity in left.json] == [ada.email]
    assert "profileData" not in api.get(path).json["identities"][0]
