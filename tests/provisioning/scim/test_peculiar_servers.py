"""Creates, changes and deletes a user on small servers. Each server deviates from SCIM as a real server does.

The other users must stay unchanged. The tests in `tests/peers` use real servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.factories.links import MemoryLinks
from tests.factories.scim import Received, Wire, listing, misbehaving_server, reply, scim_error
from tests.factories.scim_runs import ANNA, Ran, run_event

STRANGERS: list[dict[str, Any]] = [
    {"id": "1", "externalId": "database|ann", "userName": "ann@example.test"},
    {"id": "2", "externalId": "hr|database|anna", "userName": "database|anna"},
    {"id": "3", "externalId": "database|zzz", "userName": "zzz@example.test"},
]
Matching = Callable[[str, str, dict[str, Any]], bool]


def exactly(attribute: str, value: str, item: dict[str, Any]) -> bool:
    return bool(item.get(attribute) == value)


def as_pattern(attribute: str, value: str, item: dict[str, Any]) -> bool:
    return re.search(value, str(item.get(attribute, ""))) is not None


def ignored(attribute: str, value: str, item: dict[str, Any]) -> bool:
    return True


def by_user_name(attribute: str, value: str, item: dict[str, Any]) -> bool:
    return bool(item.get("userName") == value)


def by_user_name_without_case(attribute: str, value: str, item: dict[str, Any]) -> bool:
    return str(item.get("userName", "")).casefold() == value.casefold()


def never(attribute: str, value: str, item: dict[str, Any]) -> bool:
    return attribute != "externalId" and item.get(attribute) == value


class PeculiarServer:
    """A SCIM server that stores users. Subclasses define a deviation by `matching`, `drops` or overridden methods."""

    matching = staticmethod(exactly)
    drops: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.users = {str(item["id"]): dict(item) for item in STRANGERS}

    def __call__(self, request: Received) -> Wire:
        identifier = request.path.removeprefix("/scim/v2/Users").removeprefix("/").replace("%40", "@")
        if request.verb == "GET" and not identifier:
            return self.search(request)
        if request.verb == "POST":
            return self.create(request.json)
        if identifier not in self.users:
            return scim_error(404)
        return {"GET": self.read, "PUT": self.put, "PATCH": self.patch, "DELETE": self.delete}[request.verb](request, identifier)

    def search(self, request: Received) -> Wire:
        attribute, _, value = request.filter.partition(" eq ")
        return listing(*(item for item in self.users.values() if self.matching(attribute, json.loads(value), item)))

    def read(self, request: Received, identifier: str) -> Wire:
        return reply(200, self.users[identifier])

    def id_of(self, resource: dict[str, Any]) -> str:
        return str(len(self.users) + 6)

    def create(self, resource: dict[str, Any]) -> Wire:
        if any(item["userName"] == resource.get("userName") for item in self.users.values()):
            return self.conflict()
        identifier = self.id_of(resource)
        self.users[identifier] = {**{name: value for name, value in resource.items() if name not in self.drops}, "id": identifier}
        return reply(201, self.users[identifier])

    def conflict(self) -> Wire:
        return scim_error(409, "uniqueness")

    def put(self, request: Received, identifier: str) -> Wire:
        self.users[identifier] = {**{name: value for name, value in request.json.items() if name not in self.drops}, "id": identifier}
        return reply(200, self.users[identifier])

    def patch(self, request: Received, identifier: str) -> Wire:
        return scim_error(501)

    def delete(self, request: Received, identifier: str) -> Wire:
        del self.users[identifier]
        return reply(204)

    @property
    def strangers(self) -> list[dict[str, Any]]:
        return [item for identifier, item in self.users.items() if identifier in {"1", "2", "3"}]


class ReadsPatterns(PeculiarServer):
    """Like scimgateway: the value of a filter is a regular expression."""

    matching = staticmethod(as_pattern)


class IgnoresFilters(PeculiarServer):
    """Like Canaille: every lookup returns all users, and `externalId` is not stored."""

    matching = staticmethod(ignored)
    drops = ("externalId",)


class ComparesAnother(PeculiarServer):
    """Like saml-jackson: every filter compares the user name, and a deletion is answered with 200 and a body."""

    matching = staticmethod(by_user_name)

    def delete(self, request: Received, identifier: str) -> Wire:
        super().delete(request, identifier)
        return reply(200, {"deleted": True})


class FindsNothing(PeculiarServer):
    """Like django-scim2 without changes: a filter on `externalId` finds no user. A 409 has no `scimType`, and its `status` is a number."""

    matching = staticmethod(never)

    def conflict(self) -> Wire:
        return reply(409, {"schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"], "status": 409, "detail": "UNIQUE constraint failed"})


class NamesAreIds(PeculiarServer):
    """Like scimgateway: the id is the first user name of the account, and a deletion that succeeds is answered with status 500."""

    def id_of(self, resource: dict[str, Any]) -> str:
        return str(resource["userName"])

    def delete(self, request: Received, identifier: str) -> Wire:
        super().delete(request, identifier)
        return scim_error(500)


class AnswersPages(PeculiarServer):
    """A server behind a login page. It answers 200 with HTML, labeled with the SCIM media type."""

    def search(self, request: Received) -> Wire:
        return reply(200, raw=b"<html>Sign in</html>")


class LabelsPlainJson(PeculiarServer):
    """Like saml-jackson behind a small wrapper: a lookup returns plain JSON without `schemas`, with a parameter in its media type."""

    def search(self, request: Received) -> Wire:
        found = json.loads(bytes(super().search(request)).partition(b"\r\n\r\n")[2])  # type: ignore[arg-type]  # a listing is bytes
        return reply(200, {"Resources": found["Resources"]}, headers={"Content-Type": "application/json; charset=utf-8"})


def outcome(ran: Ran) -> str:
    return ran.result.reason if ran.result is not None else f"{ran.failed.kind}: {ran.failed.class_name}"


def life_of_anna(server: PeculiarServer, **more: Any) -> list[str]:
    """Create, rename and delete a user, and check after each step that the other users are unchanged. Return the result of each step."""
    ends, links = [], MemoryLinks()
    with misbehaving_server(server) as running:
        for event_type, document in (("user.created", ANNA), ("user.updated", {**ANNA, "name": "New"}), ("user.deleted", ANNA)):
            ends.append(outcome(run_event(running.base_url, event_type, document, links=links, **more)))
            assert server.strangers == STRANGERS
    return ends


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        (PeculiarServer, ["created", "updated", "deleted"]),
        (ReadsPatterns, ["created", "updated", "deleted"]),
        # The server does not store the key (`externalId`). The service recognizes the linked account by the user name that it has sent.
        (IgnoresFilters, ["created", "updated", "deleted"]),
        # A lookup by `externalId` finds nothing, or finds the wrong account. The service uses the account that the link identifies.
        (ComparesAnother, ["created", "updated", "deleted"]),
        (FindsNothing, ["created", "updated", "deleted"]),
        (NamesAreIds, ["created", "updated", "deleted"]),
        (AnswersPages, ["created", "shape: InvalidResponseShape", "shape: InvalidResponseShape"]),
        (LabelsPlainJson, ["created", "updated", "deleted"]),
    ],
)
def test_creating_or_renaming_or_deleting_a_user_changes_no_other_user(kind: type[PeculiarServer], ends: list[str]) -> None:
    assert life_of_anna(kind()) == ends


@pytest.mark.parametrize("kind", [ReadsPatterns, IgnoresFilters, ComparesAnother, FindsNothing])
@pytest.mark.parametrize("event_type", ["user.updated", "user.deleted"])
def test_a_missing_user_does_not_match_another_user(kind: type[PeculiarServer], event_type: str) -> None:
    server = kind()
    with misbehaving_server(server) as running:
        ran = run_event(running.base_url, event_type, {**ANNA, "user_id": "database|."}, options={"upsert": False})
    assert outcome(ran) in ("no user to update", "no user to delete")
    assert (server.users, server.strangers) == ({item["id"]: item for item in STRANGERS}, STRANGERS)


def test_a_conflict_without_a_type_is_resolved_if_the_account_has_our_key() -> None:
    server = FindsNothing()
    with misbehaving_server(server) as running:
        assert run_event(running.base_url).reason == "created"
        assert run_event(running.base_url).reason == "duplicate delivery"
    assert sum(item["userName"] == ANNA["email"] for item in server.users.values()) == 1


def test_a_conflict_is_reported_if_the_account_has_another_external_id() -> None:
    server = FindsNothing()
    server.users["9"] = {"id": "9", "userName": ANNA["email"], "externalId": "hr|9"}
    with misbehaving_server(server) as running:
        assert (run_event(running.base_url).failed.class_name, server.users["9"]["externalId"]) == ("Conflict", "hr|9")


def test_user_names_are_compared_without_regard_to_case() -> None:
    class WithoutCase(IgnoresFilters):
        matching = staticmethod(by_user_name_without_case)

        def search(self, request: Received) -> Wire:
            return scim_error(400, "invalidFilter") if request.filter.startswith("externalId") else super().search(request)

    server = WithoutCase()
    server.users["9"] = {"id": "9", "userName": "ANNA@example.test"}
    with misbehaving_server(server) as running:
        assert run_event(running.base_url, "user.updated").reason == "updated"
    assert server.users["9"]["displayName"] == ANNA["name"]
    assert server.strangers == STRANGERS
