"""Fixtures for synchronizations: a real SCIM server, a disabled stream to it, and a function that runs a synchronization."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from events.models import EventStream
from identity.models import Job, Tenant
from identity.services.jobs import run_job
from provisioning.engine.streams import create_stream
from provisioning.services.actions import deploy_action
from provisioning.synchronization import service, work  # noqa: F401  (`work` registers the jobs)
from provisioning.synchronization.plan import Plan
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import TOKEN, RealServer, running_scim_server

USER_EVENTS = ["user.created", "user.updated", "user.deleted"]
FAST = Plan(rate=1000)


@pytest.fixture(scope="session")
def scim_process() -> Iterator[RealServer]:
    with running_scim_server() as server:
        yield server


@pytest.fixture
def server(scim_process: RealServer) -> Iterator[RealServer]:
    """Return the real SCIM server, which has no users."""
    scim_process.clear()
    yield scim_process
    scim_process.clear()


def stream_to(tenant: Tenant, base_url: str, *, options: dict[str, Any] | None = None, **more: str) -> EventStream:
    """Return a disabled stream whose deployed action sends users to this server."""
    secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_MAX_RETRIES": "0", **more}
    action = ActionFactory.create(
        tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets, options=options or {}
    )
    deploy_action(tenant_id=tenant.pk, action_id=action.pk)
    bound = {"action_id": str(action.pk)}
    return create_stream(
        tenant_id=tenant.pk, name="scim", subscriptions=USER_EVENTS, destination_type="action", destination=bound, is_enabled=False
    )


@pytest.fixture
def stream(tenant: Tenant, server: RealServer) -> EventStream:
    return stream_to(tenant, server.base_url)


Synchronize = Callable[..., Job]


@pytest.fixture
def synchronize(tenant: Tenant, stream: EventStream) -> Synchronize:
    """Return a function that starts a synchronization of the stream with a plan, and runs the job until it ends or waits."""

    def run(**plan: Any) -> Job:
        job = service.start(tenant_id=tenant.pk, stream_id=stream.pk, plan=replace(FAST, **plan), actor="a test")
        return work_on(job)

    return run


def work_on(job: Job) -> Job:
    """Run the job until it has ended or waits, and return it with its new state."""
    run_job(job.pk)
    job.refresh_from_db()
    return job
