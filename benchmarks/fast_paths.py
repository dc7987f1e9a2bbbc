"""The gain of each fast path: the processor time of one process per result, with the fast and with the plain path, measured alternately.

Run with `.venv/bin/python -m benchmarks fast_paths`. Prints the median of the rounds in microseconds per call, without the time of the
database. `docs/figures.md` has a row for each module whose first line begins with "Fast path". If another benchmark measures a module, the
row of the module names that other benchmark.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")

import django

django.setup()

import psycopg  # noqa: E402
import requests  # noqa: E402
from joserfc import jws  # noqa: E402
from joserfc.jwk import ECKey  # noqa: E402
from joserfc.jws import JWSRegistry  # noqa: E402

from authapi.possession import es256  # noqa: E402
from authapi.tokens.fast_signing import plainly_signed, signing  # noqa: E402
from authapi.tokens.keys import signing_key  # noqa: E402
from benchmarks.auth.proofs import Prover  # noqa: E402
from benchmarks.scim_answers import handle  # noqa: E402
from events.log import reading  # noqa: E402
from events.log.numbering import number_tenant  # noqa: E402
from foundation.database.compiled_select import CompiledSelect  # noqa: E402
from foundation.database.loop_queries import LoopSelect, close_loop_queries, open_loop_queries  # noqa: E402
from foundation.memory import executor  # noqa: E402
from foundation.memory.short_work import short_work  # noqa: E402
from foundation.outbound.addresses import parse_networks  # noqa: E402
from foundation.outbound.outcomes import OutboundRules  # noqa: E402
from foundation.outbound.session import OutboundSession  # noqa: E402
from identity import hosts  # noqa: E402
from identity.models import User  # noqa: E402
from identity.services import connections, tenants, users  # noqa: E402
from tests.events.stream.fake_log import FakeLog, OpenStream, until  # noqa: E402

_ROUNDS = 9
_USER = CompiledSelect(
    lambda tenant_id, user_id: User.objects.of(tenant_id).select_related("connection").filter(user_id=user_id).order_by(),
    "tenant_id",
    "user_id",
)
_USER_ON_LOOP = LoopSelect(
    "benchmark_user",
    lambda tenant_id, user_id: User.objects.of(tenant_id).select_related("connection").filter(user_id=user_id).order_by(),
    "tenant_id",
    "user_id",
)
_STREAMS = 1000
_EVENTS = 20
_PROFILE = {"plan": "x" * 400}

Timed = Callable[[], float]


def timed(work: Callable[[], object], calls: int) -> float:
    """Return microseconds of processor time for each call."""
    started = time.thread_time()
    for _ in range(calls):
        work()
    return (time.thread_time() - started) / calls * 1e6


async def timed_async(work: Callable[[], Awaitable[object]], calls: int) -> float:
    started = time.thread_time()
    for _ in range(calls):
        await work()
    return (time.thread_time() - started) / calls * 1e6


def compare(name: str, fast: Timed, plain: Timed) -> None:
    """Measure the fast and the plain path alternately, and print the median of each."""
    found = [(fast(), plain()) for _ in range(_ROUNDS)]
    quick, slow = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"{name}: {quick:.1f} µs by the fast path, {slow:.1f} µs by the plain path (ratio {quick / slow:.2f})", flush=True)


def compare_row(user: User) -> None:
    def plain() -> object:
        rows = User.objects.of(user.tenant_id).select_related("connection").filter(user_id=user.user_id).order_by()
        return rows.first()

    fast = partial(_USER.first, tenant_id=user.tenant_id, user_id=user.user_id)
    compare("foundation/database/compiled_select.py, a user with its connection", partial(timed, fast, 500), partial(timed, plain, 500))


def compare_page(tenant_id: str) -> None:
    async def both() -> list[tuple[float, float]]:
        pool = reading.read_pool()
        await pool.open()
        statement, values = reading._PAGE, (tenant_id, 0, 10, 100_000)

        async def plain() -> object:
            async with pool.connection() as handle:
                cursor = psycopg.AsyncRawCursor(handle)
                await cursor.execute(statement.query, values, binary=True)
                return await cursor.fetchall()

        try:
            fast = partial(pool.rows, statement, *values)
            return [(await timed_async(fast, 300), await timed_async(plain, 300)) for _ in range(_ROUNDS)]
        finally:
            await pool.close()

    found = iter([each for pair in asyncio.run(both()) for each in pair])
    compare("foundation/database/prepared_statements.py, a page of the log", lambda: next(found), lambda: next(found))


async def _processor_async(work: Callable[[], Awaitable[object]], calls: int) -> float:
    """Return microseconds of processor time per call, over all threads of the process."""
    started = time.process_time()
    for _ in range(calls):
        await work()
    return (time.process_time() - started) / calls * 1e6


def compare_on_loop(name: str, fast: Callable[[], Awaitable[object]], plain: Callable[[], Awaitable[object]]) -> None:
    """Compare two implementations on an event loop, by the processor time of all threads."""

    async def both() -> list[tuple[float, float]]:
        await open_loop_queries()
        try:
            return [(await _processor_async(fast, 300), await _processor_async(plain, 300)) for _ in range(_ROUNDS)]
        finally:
            await close_loop_queries()

    found = iter([each for pair in asyncio.run(both()) for each in pair])
    compare(name, lambda: next(found), lambda: next(found))


def compare_row_on_loop(user: User) -> None:
    values = {"tenant_id": user.tenant_id, "user_id": user.user_id}
    compare_on_loop(
        "foundation/database/loop_queries.py, a user with its connection, queried from the event loop",
        lambda: _USER_ON_LOOP.first(**values),
        lambda: executor.run(partial(_USER.first, **values)),
    )


def compare_short_work() -> None:
    def work() -> None:
        """Do nothing, so that only the round trip to the thread is measured."""

    compare_on_loop("foundation/memory/short_work.py, to a thread and back", lambda: short_work().run(work), lambda: executor.run(work))


def compare_signatures(tenant_id: str) -> None:
    kid, key = signing_key(tenant_id)
    header, payload = {"alg": "RS256", "typ": "JWT", "kid": kid}, b"{}" * 150
    fast = partial(timed, lambda: signing(header, payload, key)(), 300)
    compare("authapi/tokens/fast_signing.py, a signed token", fast, partial(timed, lambda: plainly_signed(header, payload, key), 300))


def compare_proofs() -> None:
    prover = Prover("https://a.example.test/oauth/token")
    text = prover.proof()
    header = jws.extract_compact(text.encode()).headers()
    public = ECKey.import_key(header["jwk"])
    fast = partial(timed, lambda: es256.is_verified(text, header, public.public_key), 300)
    registry = JWSRegistry(algorithms=["ES256"])
    plain = partial(timed, lambda: jws.deserialize_compact(text, public, algorithms=["ES256"], registry=registry), 300)
    compare("authapi/possession/es256.py, the signature of a proof", fast, plain)


def compare_host(authority: str) -> None:
    fast, plain = partial(hosts.matches.get, authority), partial(hosts._resolved, authority)
    compare("foundation/memory/ttl_cache.py, the tenant of a host", partial(timed, fast, 5000), partial(timed, plain, 300))


def compare_heads(tenant_id: str) -> None:
    async def round_of(*, is_fast: bool) -> float:
        pool = reading.read_pool()
        await pool.open()
        log = reading.LogReader(pool)
        try:
            return (
                await timed_async(
                    lambda: asyncio.gather(*(log.bounds(tenant_id) if is_fast else log._bounds_of([tenant_id]) for _ in range(50))), 20
                )
                / 50
            )
        finally:
            await pool.close()

    fast, plain = (lambda which=which: asyncio.run(round_of(is_fast=which)) for which in (True, False))
    compare("foundation/memory/batching.py, the last position of a log for one of 50 streams that open at once", fast, plain)


def compare_request() -> None:
    started = threading.Event()
    ports: list[int] = []

    async def serve() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        started.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    started.wait(10)
    address, body = f"http://127.0.0.1:{ports[0]}/Users", b'{"userName": "ada@example.test"}'
    session, bare = OutboundSession(OutboundRules(parse_networks(["127.0.0.0/8"]), allow_http=True)), requests.Session()
    headers = {"Authorization": "Bearer t", "Content-Type": "application/scim+json"}

    def fast() -> object:
        return session.send("POST", address, headers=headers, body=body, deadline=time.monotonic() + 10)

    def plain() -> object:
        return bare.post(address, headers=headers, data=body, timeout=10, allow_redirects=False).content

    compare("foundation/outbound/adapter.py, a request to a SCIM server", partial(timed, fast, 300), partial(timed, plain, 300))


def compare_frames() -> None:
    async def round_of(*, is_fast: bool) -> float:
        log = FakeLog()
        opened = [first := OpenStream(log), *(OpenStream(log, beside=first) for _ in range(_STREAMS - 1))]
        streams = [await each.opened() for each in opened]
        await until(lambda: all(stream._is_parked for stream in streams))
        for stream in streams:
            stream.writer._pass = (lambda _body, _chunk: True) if is_fast else None
        started = time.thread_time()
        for _ in range(_EVENTS):
            first.grow(1)
            await until(lambda: all(stream._is_parked and stream.position == log.head for stream in streams))
        spent = time.thread_time() - started
        for each in opened:
            each.task.cancel()
        return spent / _EVENTS / _STREAMS * 1e6

    fast, plain = (lambda which=which: asyncio.run(round_of(is_fast=which)) for which in (True, False))
    compare("events/stream/reading/sharing.py, an event to one of 1,000 streams, without the socket", fast, plain)


def main() -> None:
    tenant_id = f"bench-{secrets.token_hex(6)}"
    tenants.create_tenant(tenant_id=tenant_id, name="bench", host=f"{tenant_id}.example.test")
    people = connections.create_connection(tenant_id=tenant_id, name="people", strategy="database")
    user = users.create_user(tenant_id=tenant_id, connection=people, email="ada@example.test", app_metadata=_PROFILE)
    number_tenant(tenant_id)
    compare_host(f"{tenant_id}.example.test")
    compare_row(user)
    compare_heads(tenant_id)
    compare_page(tenant_id)
    compare_request()
    compare_frames()
    compare_row_on_loop(user)
    compare_short_work()
    compare_signatures(tenant_id)
    compare_proofs()


if __name__ == "__main__":
    main()
