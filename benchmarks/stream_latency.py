"""From commit to the first byte at a subscriber, while management requests keep the same process busy.

Run with `.venv/bin/python -m benchmarks.stream_latency [granian|uvicorn] [samples] [streams] [requests per second] [all|split]`
against a migrated database (`DATABASE_URL`) and a Redis (`REDIS_URL`). `all` serves both from one process, `split` gives the
streams one of their own. Beside each sample a bare `INSERT; COMMIT; PUBLISH` reaches a bare
subscriber on the same servers. Writer, subscribers and management client are processes of their own; the clock is the
machine's monotonic one. It makes a tenant of its own and leaves it behind.
"""

from __future__ import annotations

import http.client
import multiprocessing
import os
import random
import re
import secrets
import selectors
import statistics
import sys
import time
from contextlib import ExitStack
from multiprocessing.connection import Connection as Pipe
from multiprocessing.synchronize import Event as Flag
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
os.environ["EVENTS_NUMBERER_ENABLED"] = "1"

import django

django.setup()

import psycopg  # noqa: E402
import redis  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import transaction  # noqa: E402

from events.hints import hint_channel  # noqa: E402
from events.models import Event, LogEntry  # noqa: E402
from events.numbering import numberer, open_connection  # noqa: E402
from identity.models import Tenant, User  # noqa: E402
from identity.services import connections, tenants, users  # noqa: E402
from tests.conformance.reader import Subscriber  # noqa: E402
from tests.conformance.target import Target, make_target  # noqa: E402
from tests.conformance.web_process import web_process  # noqa: E402

_PAUSE_SECONDS = (0.03, 0.06)
_CHANNEL = "bench:bare"


def read_streams(address: tuple[str, int], host: str, token: str, count: int, ready: Flag, stop: Flag, results: Pipe) -> None:
    """Note when the bytes of each event reached each of `count` streams."""
    headers = {"Host": host, "Authorization": f"Bearer {token}"}
    streams = [Subscriber(address, headers=headers) for _ in range(count)]
    selector = selectors.DefaultSelector()
    received: list[list[tuple[float, bytes]]] = []
    for stream in streams:
        stream.opened()
        stream.socket.settimeout(0)
        received.append([])
        selector.register(stream.socket, selectors.EVENT_READ, received[-1])
    ready.set()
    while not stop.is_set():
        for key, _ in selector.select(0.2):
            data = key.fileobj.recv(262144)  # type: ignore[union-attr]
            key.data.append((time.perf_counter(), data))
    arrivals: dict[str, list[float]] = {}
    for chunks in received:
        for moment, data in chunks:
            for event_id in re.findall(rb'"id":"(evt_[A-Za-z0-9]{22})"', data):
                arrivals.setdefault(event_id.decode(), []).append(moment)
    results.send(arrivals)


def read_bare(url: str, ready: Flag, stop: Flag, results: Pipe) -> None:
    """Note when each bare message arrived, and each hint."""
    subscription = redis.Redis.from_url(url).pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    subscription.subscribe(_CHANNEL, hint_channel())
    subscription.get_message(timeout=1.0)
    ready.set()
    arrivals = {}
    while not stop.is_set():
        message = subscription.get_message(timeout=0.2)
        if message is not None and message["type"] == "message":
            arrivals[message["data"].decode()] = time.perf_counter()
    results.send(arrivals)


def manage(address: tuple[str, int], host: str, token: str, user_id: str, rate: float, stop: Flag, results: Pipe) -> None:
    """Read and change users at a steady rate, as an administrator's script would."""
    client = http.client.HTTPConnection(*address, timeout=10)
    headers = {"Host": host, "Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    taken, statuses, due, number = [], set(), time.perf_counter(), 0
    while not stop.is_set():
        due += 1 / rate
        time.sleep(max(due - time.perf_counter(), 0))
        number += 1
        started = time.perf_counter()
        if number % 5 == 0:
            client.request("PATCH", f"/api/v2/users/{user_id.replace('|', '%7C')}", body=f'{{"name":"Ada {number}"}}', headers=headers)
        else:
            client.request("GET", "/api/v2/users?per_page=10", headers=headers)
        answer = client.getresponse()
        answer.read()
        statuses.add(answer.status)
        taken.append(time.perf_counter() - started)
    results.send((statuses, taken))


class Samples:
    """Writes events and bare rows in turn, and remembers when each was committed."""

    def __init__(self, tenant: Tenant, user: User) -> None:
        self._tenant = tenant
        self._user = user
        # The management client changes another user of the tenant meanwhile.
        self._root = Event.objects.filter(tenant_id=tenant.pk, type="user.created").earliest("id").root
        self._bare = open_connection()
        self._bare.execute("CREATE TABLE IF NOT EXISTS bench_bare (id bigserial PRIMARY KEY, body bytea)")
        self._redis = redis.Redis.from_url(settings.REDIS_URL)
        self.committed: dict[str, float] = {}
        self.bare_started: dict[str, float] = {}
        self.bare_committed: dict[str, float] = {}

    def take(self, number: int) -> None:
        """Commit one user change, then one bare row."""
        moments: list[float] = []
        with transaction.atomic():
            transaction.on_commit(lambda: moments.append(time.perf_counter()))
            users.update_user(tenant_id=self._tenant.pk, user_id=self._user.user_id, changes={"nickname": f"n{number}"})
        time.sleep(random.uniform(*_PAUSE_SECONDS))
        event = Event.objects.filter(tenant_id=self._tenant.pk, root=self._root).latest("id")
        self.committed[event.event_id] = moments[0]
        self._take_bare(str(number))
        time.sleep(random.uniform(*_PAUSE_SECONDS))

    def hints(self) -> dict[str, str]:
        """Return the hint that announced each event; events numbered together share the last one's, and are left out."""
        entries = LogEntry.objects.filter(tenant_id=self._tenant.pk, event__event_id__in=self.committed)
        return {event: f"{self._tenant.pk}:{position}" for event, position in entries.values_list("event__event_id", "position")}

    def _take_bare(self, key: str) -> None:
        self.bare_started[key] = time.perf_counter()
        with self._bare.transaction():
            self._bare.execute("INSERT INTO bench_bare (body) VALUES (%s)", [psycopg.Binary(b"x" * 1200)])
        self.bare_committed[key] = time.perf_counter()
        self._redis.publish(_CHANNEL, key)


def prepared() -> tuple[Tenant, User, User]:
    """Make a tenant with a user to change here and one to change through the management interface."""
    tenant_id = f"bench-{secrets.token_hex(6)}"
    tenant = tenants.create_tenant(tenant_id=tenant_id, name="bench", host=f"{tenant_id}.example.test")
    people = connections.create_connection(tenant_id=tenant_id, name="people", strategy=settings.DATABASE_STRATEGY)
    first, second = (users.create_user(tenant_id=tenant_id, connection=people, email=f"{name}@example.test") for name in ("ada", "bob"))
    return tenant, first, second


def shown(name: str, seconds: list[float]) -> float:
    """Print median, 99th percentile and worst in milliseconds; return the median."""
    ordered = sorted(seconds)
    median = statistics.median(ordered) * 1000
    worst = ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)] * 1000
    print(f"{name:48s} n={len(ordered):5d}  p50={median:7.2f} ms  p99={worst:7.2f} ms  max={ordered[-1] * 1000:7.2f} ms")
    return median


def main(server: str, samples: int, streams: int, rate: float, role: str) -> None:
    tenant, own, managed = prepared()
    environment = {"EVENTS_NUMBERER_ENABLED": "1", "RATE_LIMITS_ENABLED": "0", "EVENTS_HEARTBEAT_SECONDS": "15"}
    context = multiprocessing.get_context("spawn")
    is_split = role == "split"
    with ExitStack() as running:
        web = running.enter_context(web_process(server, **environment, WEB_ROLE="stream" if is_split else "all"))
        managing = running.enter_context(web_process(server, **environment, WEB_ROLE="app")) if is_split else web
        Tenant.objects.filter(pk=tenant.pk).update(max_event_connections=10_000)
        target: Target = make_target(tenant, web.address)
        token = target.token(scopes=("read:events", "read:users", "update:users"))
        stop, ready, bare_ready = context.Event(), context.Event(), context.Event()
        pipes = [context.Pipe(duplex=False) for _ in range(3)]
        work: list[tuple[Any, tuple[Any, ...]]] = [
            (read_streams, (web.address, target.host, token, streams, ready, stop, pipes[0][1])),
            (read_bare, (settings.REDIS_URL, bare_ready, stop, pipes[1][1])),
            (manage, (managing.address, target.host, token, managed.user_id, rate, stop, pipes[2][1])),
        ]
        processes = [
            context.Process(target=function, args=arguments, daemon=True) for function, arguments in work if rate or function is not manage
        ]
        for process in processes:
            process.start()
        assert ready.wait(60)
        assert bare_ready.wait(60)
        numberer().start()
        taken = Samples(tenant, own)
        for number in range(samples):
            taken.take(number)
        time.sleep(0.5)
        stop.set()
        arrivals, bare = pipes[0][0].recv(), pipes[1][0].recv()
        print(f"{server} ({role}), {streams} streams, {rate:.0f} management requests/s, load average {os.getloadavg()[0]:.1f}")
        per_event = [[moment - taken.committed[event] for moment in arrivals[event]] for event in taken.committed]
        ours = shown("commit -> first byte, every stream", [moment for moments in per_event for moment in moments])
        heard = [(bare.get(hint), taken.committed[event], min(arrivals[event])) for event, hint in taken.hints().items()]
        shown("  of which commit -> numbered and hint heard", [at - committed for at, committed, _ in heard if at])
        shown("  of which hint heard -> first byte", [first - at for at, _, first in heard if at])
        shown("commit -> first byte, last stream of an event", [max(moments) for moments in per_event])
        whole = shown("bare INSERT; COMMIT; PUBLISH -> subscriber", [bare[key] - started for key, started in taken.bare_started.items()])
        shown("bare COMMIT -> subscriber", [bare[key] - committed for key, committed in taken.bare_committed.items()])
        print(f"ratio of the medians to the bare write: {ours / whole:.2f}")
        if rate:
            statuses, durations = pipes[2][0].recv()
            shown(f"management requests {sorted(statuses)}", durations)


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    main(given.get(0, "granian"), int(given.get(1, 200)), int(given.get(2, 8)), float(given.get(3, 50)), given.get(4, "all"))
