"""A SCIM server is unavailable while a thousand users change. The breaker holds the stream, no dead letter is created, and all events
arrive in order.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from django.db import connection

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.models import Connection, Tenant, User
from identity.services.users import update_user
from provisioning.engine.streams import create_stream
from provisioning.models import Attempt, DeadLetter, Delivery, Lane
from tests.deadlines import eventually
from tests.factories.models.identity import UserFactory
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import HANG_UP, TOKEN, MisbehavingServer, Received, Wire, listing, misbehaving_server, reply
from tests.faults.worker import Worker

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1500)]

USERS = int(os.environ.get("OUTAGE_USERS", "1000"))
SECONDS = float(os.environ.get("OUTAGE_SECONDS", "10"))
PROBE_SECONDS = 1.0 if SECONDS < 60 else 30.0
SHRUNK = {"DELIVERY_RETRY_DELAYS": "1,2,4", "BREAKER_PROBE_SECONDS": str(PROBE_SECONDS), "BREAKER_FAILURES": "20", "BREAKER_USERS": "3"}
WHOLE = {"BREAKER_PROBE_SECONDS": str(PROBE_SECONDS)}


@dataclass
class Directory:
    """A SCIM server that can be switched off. `writes` lists the writes of each user, in the order of their arrival."""

    users: dict[str, dict[str, str]] = field(default_factory=dict)
    writes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    is_away: bool = False
    refused: int = 0
    guard: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Received) -> Wire:
        with self.guard:
            if self.is_away:
                self.refused += 1
                return HANG_UP
            return self._answer(request)

    def _answer(self, request: Received) -> Wire:
        if request.verb == "GET":
            found = self.users.get(json.loads(request.filter.partition(" eq ")[2]))
            return listing(found) if found else listing()
        sent = request.json
        self.writes[sent["externalId"]].append(sent["displayName"])
        self.users[sent["externalId"]] = {**sent, "id": sent["externalId"].replace("|", "-")}
        return reply(201 if request.verb == "POST" else 200, self.users[sent["externalId"]])


@pytest.fixture
def directory_server() -> Iterator[tuple[Directory, MisbehavingServer]]:
    directory = Directory()
    with misbehaving_server(directory) as server:
        yield directory, server


def bound_stream(tenant: Tenant, base_url: str) -> EventStream:
    secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN}
    action = ActionFactory.create(tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets, deploy=True)
    bound = {"action_id": str(action.pk)}
    return create_stream(tenant_id=tenant.pk, subscriptions=["user.created", "user.updated"], destination_type="action", destination=bound)


def is_settled(stream: EventStream) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT s.position = h.position FROM events_eventstream s JOIN events_head h ON h.tenant_id = s.tenant_id WHERE s.id = %s",
            [stream.pk],
        )
        return bool(cursor.fetchone()[0]) and not Lane.objects.filter(stream_id=stream.pk).exists()


def rename(tenant: Tenant, users: list[User], name: str) -> None:
    for user in users:
        update_user(tenant_id=tenant.pk, user_id=user.user_id, changes={"name": name})
    number_tenant(tenant.pk)


def test_changes_of_a_thousand_users_arrive_after_an_outage_of_the_server(
    tenant: Tenant,
    database_connection: Connection,
    start_worker: Callable[..., Worker],
    directory_server: tuple[Directory, MisbehavingServer],
) -> None:
    directory, server = directory_server
    start_worker(**(SHRUNK if SECONDS < 60 else WHOLE))
    stream = bound_stream(tenant, server.base_url)
    users = [
        UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email=f"user{at}@example.test", name="0")
        for at in range(USERS)
    ]
    number_tenant(tenant.pk)
    eventually(lambda: len(directory.users) > USERS // 4, seconds=120)

    directory.is_away = True
    rename(tenant, users, "1")
    eventually(lambda: EventStream.objects.of(tenant.pk).filter(pk=stream.pk, held_since__isnull=False).exists(), seconds=120)
    tried, began = Attempt.objects.filter(tenant_id=tenant.pk).count(), time.monotonic()
    rename(tenant, users, "2")
    eventually(lambda: time.monotonic() - began >= SECONDS, seconds=SECONDS + 60, pause=0.2)
    away = time.monotonic() - began

    # When the hold began, some deliveries were in progress. After them, only probes were sent, one delivery each.
    assert Attempt.objects.filter(tenant_id=tenant.pk).count() - tried <= away / PROBE_SECONDS + 4
    assert directory.refused
    assert not DeadLetter.objects.filter(stream_id=stream.pk).exists()
    assert EventStream.objects.of(tenant.pk).filter(pk=stream.pk, held_since__isnull=False).exists()

    directory.is_away = False
    came_back = time.monotonic()
    eventually(lambda: is_settled(stream), seconds=300, pause=0.2)
    print(f"{Delivery.objects.filter(stream_id=stream.pk).count()} deliveries, drained in {time.monotonic() - came_back:.1f} s")  # noqa: T201  (the figure of this run)
    stream.refresh_from_db()
    assert stream.held_since is None
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"delivered"}
    assert not DeadLetter.objects.filter(stream_id=stream.pk).exists()
    # The server has the state of the tables, and no user was ever set to an older state.
    assert {key: found["displayName"] for key, found in directory.users.items()} == {user.user_id: "2" for user in users}
    for key, names in directory.writes.items():
        assert names == sorted(names), key
        assert set(names) == {"0", "1", "2"}, key
