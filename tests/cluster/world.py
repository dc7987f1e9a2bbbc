"""A service on a PostgreSQL cluster, with tenants, writers and readers, and checks of their final state."""

from __future__ import annotations

import shutil

import psycopg

from config.launcher import postgres
from config.schema.restoring import restore_schema
from tests.cluster.patroni import Cluster
from tests.faults.world import World


class ClusterWorld(World):
    """The world of the fault tests, with a cluster of three servers instead of one server."""

    def __init__(self, *, is_synchronous: bool) -> None:
        self._is_synchronous = is_synchronous
        super().__init__()

    def address(self, database: str = postgres.DATABASE) -> str:
        return self.cluster.url_of(database)

    def close(self) -> None:
        self.redis.stop()
        self.cluster.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _start_database(self) -> None:
        self.cluster = Cluster(self.directory, is_synchronous=self._is_synchronous)
        self.query(f"CREATE DATABASE {postgres.DATABASE}", database="postgres")
        # Every migration would wait for a standby.
        with psycopg.connect(self.address(), autocommit=True) as connection:
            restore_schema(connection)
