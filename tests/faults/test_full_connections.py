"""Foreign programs use every connection that PostgreSQL accepts. Requests are refused with a retry time, and streams stay open."""

from __future__ import annotations

from contextlib import ExitStack, suppress

import psycopg
import pytest

from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.requesting import Requests, assert_refused_politely
from tests.faults.world import World

pytestmark = pytest.mark.fault

_MAX_CONNECTIONS = 40
_END_OTHERS = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> ALL(%s)"
_COUNT_OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> ALL(%s)"


class Crowd:
    """Foreign connections, as many as the server accepts."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        self._address, self._stack = address, stack
        self._members: list[psycopg.Connection[object]] = []

    def has_all(self) -> bool:
        """End the connections of other programs, take every free connection, and report whether no other connection is left."""
        if self._members:
            self._members[0].execute(_END_OTHERS, [self._pids()])
        with suppress(psycopg.OperationalError):
            while True:
                self._members.append(self._stack.enter_context(psycopg.connect(self._address, autocommit=True, connect_timeout=5)))
        return self._members[0].execute(_COUNT_OTHERS, [self._pids()]).fetchone() == (0,)

    def _pids(self) -> list[int]:
        return [member.info.backend_pid for member in self._members]


def test_requests_are_refused_and_streams_stay_open_while_no_database_connection_is_free(world: World, following: Following) -> None:
    tenant = world.tenant()
    world.restart_postgres(settings=[f"max_connections={_MAX_CONNECTIONS}"])
    try:
        with world.web() as web, world.writers(tenant, 2, think=0.03) as writers:
            following.add(*(Follower(f"stream {number}", tenant, lambda: web.address) for number in range(3)))
            following.all_open(seconds=60)
            eventually(lambda: writers.have_made(10), seconds=60)
            client = Requests(tenant, web.address)
            with ExitStack() as stack:
                crowd = Crowd(world.address(), stack)
                eventually(crowd.has_all, seconds=60)
                answers = client.one_of_each()
                assert_refused_politely(answers)
                assert {answer.status for answer in answers[:2]} == {503}, answers
                assert all(follower.open_now for follower in following.followers)
            eventually(lambda: client.rename(tenant.users[0]).status == 200, seconds=60, pause=0.5)
            made = writers.count
            eventually(lambda: writers.have_made(made + 10), seconds=60)
            writers.stop()
            eventually(lambda: world.is_numbered(tenant), seconds=30)
            following.all_at(world.head(tenant), seconds=60)
            following.stop()
    finally:
        world.restart_postgres()
    assert [len(follower.sessions) for follower in following.followers] == [1, 1, 1]
    assert_never_failed(following)
    assert_holds(client.added_to(world.history(tenant, [writers], following.readers)))
