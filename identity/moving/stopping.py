"""Stops a tenant for its export, and starts it again.

A stop takes effect with the next statement of each worker and within a second in each web process. Transactions that began before the
stop can still write, so `Stop.still_runs` names them until they end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db import connection

from foundation.database.transactions import unit_of_work
from identity.audit.entries import record
from identity.hosts import forget_hosts
from identity.models import Job, Tenant, TenantMove
from identity.moving.failures import MoveRefused
from identity.services.saving import validated_save
from identity.services.tenant_life import locked_tenant

_MAY_STOP = (Tenant.Status.ACTIVE, Tenant.Status.SUSPENDED, Tenant.Status.DRAINING)
# The longest lease that a worker takes to send the mail or message of a job. If the lease of a job ends more than this many seconds from
# now, the job is in a pause and sends nothing.
_EFFECT_SECONDS = 60

# A function that returns a sentence for each kind of work that still runs for a stopped tenant.
StillRuns = Callable[[str], list[str]]
_checks: list[StillRuns] = []


def before_export(check: StillRuns) -> None:
    """Register a check that must find nothing before a tenant is exported."""
    if check not in _checks:
        _checks.append(check)


@dataclass(frozen=True)
class Stop:
    """A stopped tenant, and the transactions that were open when it was stopped, each with its process id and its start time."""

    tenant_id: str
    open_then: frozenset[tuple[int, str]]

    def still_runs(self) -> list[str]:
        """Return a sentence for each kind of work that may still change the tenant."""
        left = len(self.open_then & _open_transactions())
        found = [f"{left} transactions that began before the stop are open."] if left else []
        return found + what_still_runs(self.tenant_id)


@unit_of_work
def stop_tenant(*, tenant_id: str) -> None:
    """Stop a tenant: its hosts answer 503, its streams end, and workers do no work for it. A repeated call does no harm.

    Raises `NotFound`, and `MoveRefused` for a tenant that is being deleted, is being imported or has moved.
    """
    tenant = locked_tenant(tenant_id)
    if tenant.status == Tenant.Status.STOPPED:
        return
    if tenant.status not in _MAY_STOP:
        raise MoveRefused(f"The tenant {tenant_id} is {tenant.status}; only a tenant that is active, suspended or draining can be stopped.")
    earlier = tenant.status
    TenantMove.objects.create(tenant_id=tenant_id, direction=TenantMove.Direction.OUT, earlier_status=earlier)
    _change_status(tenant, Tenant.Status.STOPPED)
    record("Stopped the tenant for a move", about=tenant, former_status=earlier)


@unit_of_work
def start_tenant(*, tenant_id: str) -> str:
    """Give a stopped or moved tenant its earlier status back, and return the status. Raises `NotFound` and `MoveRefused`."""
    tenant = locked_tenant(tenant_id)
    if tenant.status not in (Tenant.Status.STOPPED, Tenant.Status.MOVED):
        raise MoveRefused(f"The tenant {tenant_id} is {tenant.status}; only a tenant that a move has stopped here can be started.")
    move = TenantMove.objects.get(pk=tenant_id)
    _change_status(tenant, move.earlier_status)
    move.delete()
    record("Started the tenant again", about=tenant)
    return tenant.status


def stop(tenant_id: str) -> Stop:
    """Stop a tenant, and note which transactions are open. Raises as `stop_tenant` does."""
    stop_tenant(tenant_id=tenant_id)
    return Stop(tenant_id, _open_transactions())


def what_still_runs(tenant_id: str) -> list[str]:
    """Return a sentence for each kind of work that still runs for a stopped tenant."""
    return [sentence for check in (_running_jobs, *_checks) for sentence in check(tenant_id)]


def _change_status(tenant: Tenant, status: str) -> None:
    tenant.status = status
    validated_save(tenant, fields=["status"])
    forget_hosts()


def _running_jobs(tenant_id: str) -> list[str]:
    """Count jobs that may be sending a mail or message. No database lock shows this work."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) FROM {Job._meta.db_table} WHERE tenant_id = %s AND has_effect_due"  # noqa: S608  (a name of the schema)
            " AND lease_until > clock_timestamp() AND lease_until <= clock_timestamp() + make_interval(secs => %s)",
            [tenant_id, _EFFECT_SECONDS],
        )
        (count,) = cursor.fetchone()
    return [f"{count} jobs may be sending a message."] if count else []


def _open_transactions() -> frozenset[tuple[int, str]]:
    """Return the open transactions of other clients of this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, xact_start::text FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return frozenset(cursor.fetchall())
