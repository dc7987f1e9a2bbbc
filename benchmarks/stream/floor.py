"""Measures the lower bound of every latency: the time of `INSERT; COMMIT; PUBLISH`, until a bare Redis subscriber in another process has
received the message.

`python -m benchmarks.stream.floor CHANNEL` runs this module as the subscriber.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import redis

_BODY = b"x" * 1200


class Floor:
    """Writes bare rows. Records when the write of each row started and when the subscriber received its key."""

    def __init__(self, database: psycopg.Connection[object], client: redis.Redis, channel: str, subscriber: subprocess.Popen[str]) -> None:
        self._database = database
        self._client = client
        self._channel = channel
        self._subscriber = subscriber
        self._started: dict[str, float] = {}

    def take(self, key: int) -> None:
        """Commit one row, then publish its key."""
        self._started[str(key)] = time.monotonic()
        with self._database.transaction():
            self._database.execute("INSERT INTO bench_floor (body) VALUES (%s)", [_BODY])
        self._client.publish(self._channel, str(key))

    def seconds(self) -> list[float]:
        """End the subscriber; return the seconds from the start of each write until the subscriber received its key."""
        told, _ = self._subscriber.communicate("")
        heard: dict[str, float] = json.loads(told)
        return [heard[key] - started for key, started in self._started.items()]


@contextmanager
def floor() -> Iterator[Floor]:
    """Prepare a table and a subscriber on the servers of the environment."""
    channel = f"bench:floor:{os.getpid()}"
    command = [sys.executable, "-m", "benchmarks.stream.floor", channel]
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as database:
        database.execute("CREATE TABLE IF NOT EXISTS bench_floor (id bigserial PRIMARY KEY, body bytea)")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as subscriber:
            client = redis.Redis.from_url(os.environ["REDIS_URL"])
            try:
                assert subscriber.stdout is not None
                assert subscriber.stdout.readline() == "ready\n"
                yield Floor(database, client, channel, subscriber)
            finally:
                client.close()
                subscriber.kill()
                database.execute("DROP TABLE bench_floor")


def _subscribe(channel: str) -> None:
    subscription = redis.Redis.from_url(os.environ["REDIS_URL"]).pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    subscription.subscribe(channel)
    subscription.get_message(timeout=1.0)
    print("ready", flush=True)
    heard = {}
    while not select.select([sys.stdin], [], [], 0)[0]:
        message = subscription.get_message(timeout=0.2)
        if message is not None and message["type"] == "message":
            heard[message["data"].decode()] = time.monotonic()
    print(json.dumps(heard))


if __name__ == "__main__":
    _subscribe(sys.argv[1])
