"""Services on a PostgreSQL cluster or on Redis with sentinels, and the tenants, writers and readers of a test."""

from __future__ import annotations

import shutil

import psycopg
import redis

from config.launcher import postgres
from config.schema.restoring import restore_schema
from foundation.memory.redis_clients import redis_client
from tests.cluster.patroni import Cluster
from tests.cluster.sentinels import RedisCluster
from tests.faults.world import World


class ServiceWorld(World):
    """The world of the fault tests, with functions that run programs against its servers."""

    def __init__(self) -> None:
        try:
            super().__init__()
        except BaseException:
            self.stop_clusters()
            raise

    @property
    def of_workers(self) -> dict[str, str]:
        """The environment variables with which a worker uses these servers."""
        return {"DATABASE_URL": self.address(), "OUTBOUND_ALLOW_HTTP": "1", "OUTBOUND_PRIVATE_NETWORKS": "127.0.0.0/8"}

    def run_program(self, module: str, *arguments: str) -> str:
        """Run a Python module as a program against these servers. Return the output of the program."""
        return self._run("-m", module, *arguments).strip()

    def stop_clusters(self) -> None:
        """Stop the servers that this world has started in addition to the usual servers."""


class ClusterWorld(ServiceWorld):
    """A world with a PostgreSQL cluster of three servers."""

    def __init__(self, *, is_synchronous: bool) -> None:
        self._is_synchronous = is_synchronous
        super().__init__()

    def address(self, database: str = postgres.DATABASE) -> str:
        return self.cluster.url_of(database)

    def close(self) -> None:
        self.redis.stop()
        self.stop_clusters()
        shutil.rmtree(self.directory, ignore_errors=True)

    def stop_clusters(self) -> None:
        if hasattr(self, "cluster"):
            self.cluster.close()

    def _start_database(self) -> None:
        self.cluster = Cluster(self.directory, is_synchronous=self._is_synchronous)
        self.query(f"CREATE DATABASE {postgres.DATABASE}", database="postgres")
        # Restore the schema in one transaction: with synchronous replication, the commit of every migration would wait for a standby.
        with psycopg.connect(self.address(), autocommit=True) as connection:
            restore_schema(connection)


class SentinelWorld(ServiceWorld):
    """A world with three Redis protocol servers and three sentinels. The accounts on these servers may use only keys with the prefix of
    this world."""

    def __init__(self, *, is_encrypted: bool) -> None:
        self._is_encrypted = is_encrypted
        super().__init__()

    @property
    def redis_url(self) -> str:
        return self.cluster.url

    def close(self) -> None:
        self.stop_clusters()
        self.postgres.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def stop_clusters(self) -> None:
        if hasattr(self, "cluster"):
            self.cluster.close()

    def redis_client(self) -> redis.Redis:
        return redis_client(self.redis_url, connect_seconds=2.0, answer_seconds=2.0)

    def _start_database(self) -> None:
        super()._start_database()
        with psycopg.connect(self.address(), autocommit=True) as connection:
            restore_schema(connection)

    def _start_redis(self) -> None:
        self.cluster = RedisCluster(self.directory / "redis-cluster", is_encrypted=self._is_encrypted)
