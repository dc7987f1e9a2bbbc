"""Lists as snapshots. The first page has a cursor, and the list together with later events equals the tables."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import orjson
import pytest
from django.conf import settings
from django.db import connection as database
from django.db import transaction
from pytest_django.fixtures import Settings

from config.api import openapi_document
from events.log.cursor import CursorSealer, InvalidCursor
from events.log.numbering import number_tenant
from events.record.catalogue import DOCUMENT_KINDS
from foundation.api.operations import Operation
from identity.api.routes import ROUTES
from identity.models import Connection, Group, Tenant, User
from identity.services import groups, users
from identity.services.failures import ServiceError
from tests.config.two_tenants import calls, ids_of, make_other_tenant
from tests.deadlines import eventually
from tests.events.log_reading import folded, numbered, tables
from tests.factories.identity import make_user
from tests.factories.organizations import make_group, make_organization
from tests.management import Answer, Management

HEADER = "x-events-cursor"
PAGE = 5


@pytest.fixture(autouse=True)
def _many_calls_a_second(settings: Settings) -> None:
    settings.RATE_LIMITS_ENABLED = False


@pytest.fixture
def api(tenant: Tenant) -> Management:
    return Management(tenant)


def snapshots() -> set[str]:
    """Return the paths of the lists whose response has the header `X-Events-Cursor` in the OpenAPI document."""
    found = orjson.loads(openapi_document())["paths"]
    return {
        path.removeprefix("/")
        for path, operations in found.items()
        if "X-Events-Cursor" in operations.get("get", {}).get("responses", {}).get("200", {}).get("headers", {})
    }


def position_of(answer: Answer, tenant: Tenant) -> int:
    return CursorSealer(settings.CURSOR_KEYS, tenant_id=tenant.pk).open(answer.headers[HEADER]).position


def test_every_kind_of_document_has_a_list_with_a_cursor() -> None:
    operations: list[Operation] = [operation for route in ROUTES for operation in route.endpoint.operations.values()]

    assert {operation.snapshot_of for operation in operations} - {None} == {kind.name for kind in DOCUMENT_KINDS}


def test_only_first_pages_of_snapshot_lists_have_a_cursor(tenant: Tenant, api: Management) -> None:
    own = ids_of(tenant, "own")
    head = len(numbered(tenant.pk))
    described = snapshots()
    assert len(described) >= 19
    for call in calls():
        if call.method == "GET" and "{role_id}" not in call.path and "identifier" not in call.path:
            answer = call.send(api, own, replaced={}, body_ids=own)
            if call.path in described:
                assert answer.status == 200, call.path
                assert position_of(answer, tenant) == head, call.path
            else:
                assert HEADER not in answer.headers, call.path


@pytest.mark.parametrize("query", [{}, {"page": 0}, {"page": "00"}, {"take": 1}, {"include_totals": "true"}, {"take": 1, "page": 2}])
def test_a_first_page_has_a_cursor_in_every_format(api: Management, query: dict[str, Any]) -> None:
    answer = api.get("users", query)

    assert answer.status == 200
    assert answer.headers[HEADER]


def test_a_later_page_has_no_cursor(api: Management, database_connection: Connection) -> None:
    for _ in range(2):
        make_user(connection=database_connection)
    checkpoint = api.get("users", {"take": 1}).json["next"]

    for query in ({"page": 1}, {"page": 1, "include_totals": "true"}, {"from": checkpoint}, {"from": checkpoint, "take": 1, "page": 0}):
        answer = api.get("users", query)
        assert answer.status == 200
        assert HEADER not in answer.headers, query


@pytest.mark.parametrize("query", [{"page": "x"}, {"take": 0}, {"from": "nothing"}, {"per_page": 101}])
def test_a_refused_request_gets_no_cursor(api: Management, query: dict[str, Any]) -> None:
    answer = api.get("users", query)

    assert answer.status == 400
    assert HEADER not in answer.headers


def test_a_cursor_is_valid_only_for_its_own_tenant(tenant: Tenant, api: Management) -> None:
    other = make_other_tenant()
    make_organization(other)
    numbered(other.pk)

    answer = api.get("organizations")

    assert position_of(answer, tenant) == 0
    with pytest.raises(InvalidCursor):
        position_of(answer, other)


def test_the_service_reads_the_cursor_before_the_rows(tenant: Tenant, api: Management) -> None:
    """A lock delays the read of the users, while another event gets a position. This position must be after the cursor."""
    before = len(numbered(tenant.pk))
    answers: list[Answer] = []

    def ask() -> None:
        answers.append(api.get("users"))

    asking = threading.Thread(target=closing, args=(ask,))
    with transaction.atomic(), database.cursor() as cursor:
        cursor.execute("LOCK TABLE identity_user IN ACCESS EXCLUSIVE MODE")
        asking.start()
        eventually(_somebody_waits_for_users)
        # Write in another connection, because other connections cannot see the writes of this transaction.
        elsewhere(lambda: (make_organization(tenant), number_tenant(tenant.pk)))
    asking.join(10)

    assert len(numbered(tenant.pk)) == before + 1
    assert position_of(answers[0], tenant) == before


def elsewhere(work: Callable[[], object]) -> None:
    """Run `work` completely in a thread with its own database connection."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(closing, work).result()


def closing(work: Callable[[], object]) -> object:
    try:
        return work()
    finally:
        database.close()


def _somebody_waits_for_users() -> bool:
    with database.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE relation = 'identity_user'::regclass AND NOT granted")
        (count,) = cursor.fetchone()
    return bool(count)


class Writer:
    """Changes users and their memberships at random until it is stopped."""

    def __init__(self, tenant: Tenant, people: Connection, group: Group, seed: int) -> None:
        self.tenant_id, self.people, self.group = tenant.pk, people, group
        self.random = random.Random(seed)

    def write(self, is_over: threading.Event) -> None:
        while not is_over.is_set():
            try:
                self.random.choice((self.create, self.update, self.update, self.delete, self.join, self.leave))()
            except ServiceError:
                # Another writer has deleted the user in the meantime.
                continue
            number_tenant(self.tenant_id)

    def create(self) -> None:
        users.create_user(tenant_id=self.tenant_id, connection=self.people, given_name=str(self.random.random()))

    def update(self) -> None:
        users.update_user(tenant_id=self.tenant_id, user_id=self.somebody, changes={"given_name": str(self.random.random())})

    def delete(self) -> None:
        users.delete_user(tenant_id=self.tenant_id, user_id=self.somebody)

    def join(self) -> None:
        groups.add_group_members(tenant_id=self.tenant_id, group_id=self.group.pk, user_ids=[self.somebody])

    def leave(self) -> None:
        groups.remove_group_members(tenant_id=self.tenant_id, group_id=self.group.pk, member_ids=[self.somebody])

    @property
    def somebody(self) -> str:
        return self.random.choice(list(User.objects.of(self.tenant_id).values_list("user_id", flat=True)))


def walked(api: Management, path: str, key: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the cursor of the first page, and all items in the checkpoint format, page by page."""
    answer = api.get(path, {"take": PAGE})
    cursor, items = answer.headers[HEADER], answer.json[key]
    while "next" in answer.json:
        answer = api.get(path, {"take": PAGE, "from": answer.json["next"]})
        items += answer.json[key]
    return cursor, items


def continued(state: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    """Apply events in order, like a consumer whose list already contains some of the changes."""
    for event in events:
        shown = event["data"]["object"]
        match event["type"]:
            case "user.created" | "user.updated":
                state[shown["user_id"]] = shown
            case "user.deleted":
                state.pop(shown["user_id"], None)
            case "group.member.added":
                state[f"{shown['group']['id']} {shown['member']['id']}"] = True
            case "group.member.deleted":
                state.pop(f"{shown['group']['id']} {shown['member']['id']}", None)
    return state


@pytest.mark.parametrize("seed", range(3))
def test_a_list_and_later_events_together_equal_the_tables_during_writes(
    tenant: Tenant, api: Management, database_connection: Connection, seed: int
) -> None:
    group = make_group(tenant)
    for _ in range(8 * PAGE):
        make_user(connection=database_connection)
    Writer(tenant, database_connection, group, seed).join()
    head = len(numbered(tenant.pk))
    is_over = threading.Event()
    with ThreadPoolExecutor(3) as pool:
        writing = [
            pool.submit(closing, partial(Writer(tenant, database_connection, group, 10 * seed + n).write, is_over)) for n in range(3)
        ]
        eventually(lambda: position_of(api.get("connections"), tenant) > head)
        cursor, listed = walked(api, "users", "users")
        members_cursor, members = walked(api, f"groups/{group.pk}/members", "members")
        is_over.set()
        for writer in writing:
            writer.result()

    events = numbered(tenant.pk)
    opened, opened_later = (
        CursorSealer(settings.CURSOR_KEYS, tenant_id=tenant.pk).open(text).position for text in (cursor, members_cursor)
    )
    assert head < opened < opened_later < len(events)
    held_users = continued({user["user_id"]: user for user in listed}, of_kind(events[opened:], "user."))
    held_members = continued({f"{group.pk} {member['id']}": True for member in members}, of_kind(events[opened_later:], "group.member."))
    held = tables(tenant.pk)
    assert held == folded(events)
    assert held_members.keys() == {key.removeprefix("group.member:").replace(":", " ") for key in held if key.startswith("group.member:")}
    expected = {key.removeprefix("user:"): document for key, document in held.items() if key.startswith("user:")}
    assert {key: {name: user.get(name) for name in expected[key]} for key, user in held_users.items()} == expected


def of_kind(events: list[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"].startswith(prefix)]
