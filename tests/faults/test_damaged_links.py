"""The network links to the database and to Redis flip bytes or are slow.

No event is lost or repeated, and no event is stored or delivered with wrong bytes.
"""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from config.launcher.tls import server_certificate
from identity.models import Tenant
from provisioning.models import DeadLetter
from tests.deadlines import eventually
from tests.faults.conftest import RedisServer
from tests.faults.delivery_invariants import assert_sound, is_settled
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.proxy import Proxy
from tests.faults.requesting import Requests
from tests.faults.worker import Worker
from tests.faults.world import Seeded, World
from tests.provisioning.engine.logs import append_events, make_stream

pytestmark = pytest.mark.fault

# Latency of each direction: a round trip takes 150 ms.
_LATENCY_SECONDS = 0.075
_SHARE_OF_QUERIES = 0.01
_SHARE_OF_MESSAGES = 0.02
_SHARE_OF_BROKER_MESSAGES, _BROKER_FLIPS = 0.05, 5
_FLIPS = 10
_USERS = 6


def database_socket(world: World) -> Path:
    return Path(parse_qs(urlsplit(world.address()).query)["host"][0]) / ".s.PGSQL.5432"


def redis_socket(world: World) -> Path:
    return Path(unquote(urlsplit(world.environment["REDIS_URL"]).path))


def server_side(world: World) -> ssl.SSLContext:
    """Return the TLS configuration of a database server."""
    files = server_certificate(world.directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain, files.key)
    context.set_alpn_protocols(["postgresql"])
    return context


def flip(link: Proxy, share: float) -> None:
    """Flip one byte in some of the forwarded pieces, with the probability `share`, until enough pieces are damaged."""
    link.flip_share = share
    eventually(partial(link.has_flipped, link.flipped + _FLIPS), seconds=180)
    link.flip_share = 0.0


def goes_on(world: World, tenant: Seeded, following: Following) -> None:
    place = world.head(tenant)
    following.all_at(place._replace(position=place.position + 10), seconds=60)


def test_a_flipped_byte_on_an_encrypted_link_to_the_database_causes_no_wrong_event(world: World, following: Following) -> None:
    tenant = world.tenant()
    # The private server does not support TLS, so a proxy in front of it decrypts.
    with Proxy(database_socket(world), tls=server_side(world)) as server, Proxy(server.address) as link:
        address = f"postgresql://postgres@127.0.0.1:{link.address[1]}/identity?sslmode=require&sslnegotiation=direct"
        with world.web(DATABASE_URL=address) as web, world.writers(tenant, 2, variables={"DATABASE_URL": address}) as writers:
            following.add(*(Follower(f"stream {number}", tenant, lambda: web.address, cut_bytes=20_000) for number in range(2)))
            eventually(lambda: all(follower.sessions for follower in following.followers), seconds=60)
            eventually(partial(writers.have_made, 5), seconds=60)
            flip(link, _SHARE_OF_QUERIES)
            goes_on(world, tenant, following)
            writers.stop()
            eventually(lambda: world.is_numbered(tenant), seconds=30)
            following.all_at(world.head(tenant), seconds=60)
            following.stop()
    assert_never_failed(following)
    assert_holds(world.history(tenant, [writers], following.readers))


def test_flipped_bytes_on_the_link_to_redis_change_no_stream(world: World, following: Following) -> None:
    tenant = world.tenant()
    epoch = world.head(tenant).epoch
    with Proxy(redis_socket(world)) as link:
        address = f"redis://127.0.0.1:{link.address[1]}/0"
        with world.web(REDIS_URL=address) as web, world.writers(tenant, 2, variables={"REDIS_URL": address}) as writers:
            following.add(*(Follower(f"stream {number}", tenant, lambda: web.address, cut_bytes=20_000) for number in range(2)))
            eventually(lambda: all(follower.sessions for follower in following.followers), seconds=60)
            eventually(partial(writers.have_made, 5), seconds=60)
            flip(link, _SHARE_OF_MESSAGES)
            goes_on(world, tenant, following)
            writers.stop()
            eventually(lambda: world.is_numbered(tenant), seconds=30)
            following.all_at(world.head(tenant), seconds=60)
            following.stop()
    assert world.head(tenant).epoch == epoch
    assert_never_failed(following)
    assert_holds(world.history(tenant, [writers], following.readers))


def test_flipped_bytes_on_the_link_to_the_broker_neither_lose_nor_repeat_a_delivery(
    tenant: Tenant, start_worker: Callable[..., Worker], directory: Path, redis_server: RedisServer
) -> None:
    stream = make_stream(tenant)
    with Proxy(("127.0.0.1", redis_server.port)) as link:
        address = f"redis://127.0.0.1:{link.address[1]}/0"
        worker = start_worker(REDIS_URL=address, DELIVERY_LEASE_SECONDS="10", DELIVERY_RETRY_DELAYS="0.2,0.2")
        keys = [f"user:{tenant.pk}-{number}" for number in range(_USERS)]
        numbers = itertools.count()

        def is_damaged() -> bool:
            """Report whether enough bytes are flipped. Also cause more deliveries, because otherwise few messages use the link."""
            if is_settled(stream):
                append_events(tenant, keys, data=[next(numbers)] * _USERS)
            return link.has_flipped(_BROKER_FLIPS)

        link.flip_share = _SHARE_OF_BROKER_MESSAGES
        eventually(is_damaged, seconds=120, pause=0.2)
        link.flip_share = 0.0
        eventually(lambda: is_settled(stream), seconds=90)
        assert worker.process.poll() is None
    assert not DeadLetter.objects.filter(stream_id=stream.pk).exists()
    assert_sound(stream, directory, crashes=0)


@pytest.mark.parametrize(
    ("damage", "is_response"),
    [(b"*?\r\n", True), (b"*1\r\n$6\r\nBRPOQ!\r\n", False)],
    ids=["a response that cannot be read", "a command that the broker refuses"],
)
def test_a_worker_connects_again_after_damaged_bytes_on_the_link_to_the_broker(
    tenant: Tenant, start_worker: Callable[..., Worker], redis_server: RedisServer, damage: bytes, is_response: bool
) -> None:
    stream = make_stream(tenant)
    with Proxy(("127.0.0.1", redis_server.port)) as link:
        worker = start_worker(REDIS_URL=f"redis://127.0.0.1:{link.address[1]}/0")
        connected = worker.log.count("Connected to ")
        link.inject(damage, to_clients=is_response)
        eventually(lambda: worker.process.poll() is not None or worker.log.count("Connected to ") > connected, seconds=60)
        assert worker.process.poll() is None, worker.log
        append_events(tenant, [f"user:{tenant.pk}"])
        eventually(lambda: is_settled(stream), seconds=60)
    assert not DeadLetter.objects.filter(stream_id=stream.pk).exists()


def test_streams_and_requests_continue_over_a_slow_link_to_the_database(world: World, following: Following) -> None:
    tenant = world.tenant()
    with Proxy(database_socket(world)) as link:
        link.delay_seconds = _LATENCY_SECONDS
        address = f"postgresql://postgres@127.0.0.1:{link.address[1]}/identity"
        with world.web(DATABASE_URL=address) as web, world.writers(tenant, 2, variables={"DATABASE_URL": address}) as writers:
            following.add(*(Follower(f"stream {number}", tenant, lambda: web.address) for number in range(2)))
            following.all_open(seconds=60)
            client = Requests(tenant, web.address)
            assert client.rename(tenant.users[0]).status == 200
            goes_on(world, tenant, following)
            writers.stop()
            eventually(lambda: world.is_numbered(tenant), seconds=30)
            following.all_at(world.head(tenant), seconds=60)
            following.stop()
    assert [len(follower.sessions) for follower in following.followers] == [1, 1]
    assert_never_failed(following)
    assert_holds(client.added_to(world.history(tenant, [writers], following.readers)))
