"""Deliveries of a cluster test: a worker, a recorder, and a real SCIM server whose accounts must equal the users at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.world import ServiceWorld
from tests.deadlines import eventually
from tests.factories.scim import RealServer, running_scim_server
from tests.faults.worker import Worker
from tests.faults.world import Seeded

PROCESSES = 2
# Abandoned lanes are claimed again soon. The breaker is off, so that failures of the database do not hold the stream.
_TIMES = {
    "DELIVERY_LEASE_SECONDS": "2",
    "DELIVERY_RETRY_DELAYS": ",".join(["0.5"] * 100),
    "BREAKER_FAILURES": "0",
    "EVENTS_SWEEPER_ENABLED": "1",
}


@dataclass
class Deliveries:
    """Two streams of a tenant with their destinations."""

    world: ServiceWorld
    tenant: Seeded
    directory: Path
    recorder: str
    scim: str
    server: RealServer
    workers: list[Worker]

    def start_export(self) -> str:
        """Start an export, which reads all users in a worker; return the job."""
        return self.world.run_program("tests.cluster.binding", "export", self.tenant.id)

    def let_lease_run_out(self, job: str) -> None:
        """End the lease of the job now, instead of after a minute, so that another worker takes over the job."""
        self.world.query("UPDATE identity_job SET lease_until = now() WHERE id = %s AND lease_until IS NOT NULL", job)

    def is_exported(self, job: str) -> bool:
        [(status,)] = self.world.query("SELECT status FROM identity_job WHERE id = %s", job)
        assert status != "failed", "the export failed"
        return bool(status == "completed")

    def assert_sound(self, *, is_lossy: bool = False) -> None:
        """Wait until every delivery has ended, judge all deliveries, and compare the accounts with the users.

        With `is_lossy`, the SCIM server may have accounts of users whose creation the database has lost.
        """
        # On a busy machine, one worker needs minutes for the deliveries of a failover.
        eventually(lambda: not self._lanes(), seconds=300, pause=0.5)
        eventually(lambda: self._verdict(*(["lossy"] if is_lossy else [])) == "settled", seconds=60, pause=0.5)
        rows = self.world.query("SELECT user_id, coalesce(nickname, '') FROM identity_user WHERE tenant_id = %s", self.tenant.id)
        accounts = {user["externalId"]: user["nickName"] for user in self.server.users()}
        # `self.tenant.users` were created before the stream, so their creation was not delivered, and later changes create no account.
        users = {name: nickname for name, nickname in rows if name not in self.tenant.users}
        known = {name: nickname for name, nickname in accounts.items() if not is_lossy or name in users}
        assert known == users
        states = self.world.query("SELECT DISTINCT state FROM provisioning_delivery WHERE stream_id = %s", self.scim)
        assert {state for (state,) in states} <= {"delivered", "skipped", "superseded"}

    def _lanes(self) -> int:
        return int(self.world.query("SELECT count(*) FROM provisioning_lane WHERE tenant_id = %s", self.tenant.id)[0][0])

    def _verdict(self, *options: str) -> str:
        return self.world.run_program("tests.cluster.judging", self.recorder, str(self.directory), *options)


@contextmanager
def delivering(world: ServiceWorld, tenant: Seeded, directory: Path, *, is_lossy: bool = False, **variables: str) -> Iterator[Deliveries]:
    """Deliver the events of the tenant during the block, and judge all deliveries after the block. `variables` configures the worker."""
    # Disable the streams of earlier tests, whose servers no longer run.
    world.query("UPDATE events_eventstream SET status = 'disabled'")
    with running_scim_server() as server:
        streams = json.loads(world.run_program("tests.cluster.binding", tenant.id, server.base_url))
        environment = {"REDIS_PREFIX": world.environment["REDIS_PREFIX"], **world.of_workers, **_TIMES}
        workers = [started(world, directory, environment | variables)]
        deliveries = Deliveries(world, tenant, directory, streams["recorder"], streams["scim"], server, workers)
        try:
            yield deliveries
            if variables:
                # A sweep finds deliveries whose nudge was lost with a server. `variables` may delay the sweeps of the first worker, so
                # start a second worker without these variables.
                workers.append(started(world, directory, environment))
            deliveries.assert_sound(is_lossy=is_lossy)
        except BaseException:
            print(workers[0].log[-6000:])  # noqa: T201  (pytest shows it with the failure)
            raise
        finally:
            for worker in workers:
                worker.kill()


def started(world: ServiceWorld, directory: Path, environment: dict[str, str]) -> Worker:
    return Worker(directory, world.redis_url, concurrency=PROCESSES, **environment)
