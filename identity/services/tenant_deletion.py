"""Delete a tenant: suspend it, delete its rows and record events, let its streams deliver the events, and keep the log for a while.

1. `start` sets the status `deleting`: every host answers 403, its staff cannot log in, open streams close. It creates a job.
2. During `TENANT_DELETION_GRACE_DAYS` nothing is deleted, and `restore` cancels the deletion.
3. The job fails all other jobs of the tenant. In chunks and in this order, it deletes organizations, connections together with their
   users, then groups, then roles, and records the events of these deletions. Then it deletes clients, keys and tokens, for which no event
   is recorded.
4. The job waits until every event stream has delivered or dead-lettered all events, at most `TENANT_DRAIN_SECONDS`.
5. The tenant is `deleted`: suspended for good. Its log is kept for its retention, then purged (`tenant_purge`).
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from foundation.database.transactions import unit_of_work
from foundation.hooks import tenant_is_drained
from identity.models import Connection, Group, Job, Organization, Role, Tenant, User
from identity.purging import coverage
from identity.services.connections import CONNECTION_DELETION
from identity.services.deletions import CHUNK_ROWS, Deletion, count_deleted, make_deletion_job
from identity.services.failures import NotSupported
from identity.services.groups import GROUP_DELETION
from identity.services.jobs import Pause, end_other_jobs, step_of, unfinished
from identity.services.organizations import ORGANIZATION_DELETION
from identity.services.roles import ROLE_DELETION
from identity.services.tenant_life import locked_tenant, move

# Users are deleted with their connections, before groups and roles: a group may contain users of any connection, and a role may be assigned
# to any user.
_CHILDREN: tuple[tuple[Deletion, type[Organization | Connection | Group | Role]], ...] = (
    (ORGANIZATION_DELETION, Organization),
    (CONNECTION_DELETION, Connection),
    (GROUP_DELETION, Group),
    (ROLE_DELETION, Role),
)
_DRAIN_POLL_SECONDS = 2.0


@unit_of_work
def start(*, tenant_id: str) -> Job:
    """Begin the deletion, or create a new job if the last job failed. Returns the job. Raises `NotFound` and `NotSupported`."""
    if tenant_id == settings.LOCALHOST_TENANT:
        raise NotSupported("This tenant answers on localhost: point LOCALHOST_TENANT to another tenant first.")
    tenant = locked_tenant(tenant_id)
    if tenant.status == Tenant.Status.DELETING:
        return unfinished(tenant_id, Job.Type.TENANT_DELETION).first() or _make_job(tenant_id)
    tenant.deletion_started_at = timezone.now()
    move(tenant, Tenant.Status.DELETING)
    return _make_job(tenant_id)


@unit_of_work
def restore(*, tenant_id: str) -> Tenant:
    """Cancel a deletion before anything was deleted. The tenant is then suspended. Raises `NotFound` and `NotSupported`."""
    # Lock the job before the tenant, in the same order as the job itself.
    job = unfinished(tenant_id, Job.Type.TENANT_DELETION).select_for_update().first()
    tenant = locked_tenant(tenant_id)
    if tenant.status != Tenant.Status.DELETING:
        raise NotSupported("The tenant is not being deleted.")
    if job is None or "begun" in job.parameters:
        raise NotSupported("The deletion has begun. Deleted rows cannot be restored.")
    job.status, job.status_details, job.finished_at = Job.Status.FAILED, "The tenant was restored.", timezone.now()
    job.save()
    tenant.deletion_started_at = None
    move(tenant, Tenant.Status.SUSPENDED)
    return tenant


def what_hangs_on_tenant(tenant_id: str) -> dict[str, int]:
    """Return the number of rows of each kind in a tenant. The keys are readable names of the kinds."""
    kinds = {"users": User, "connections": Connection, "organizations": Organization, "groups": Group, "roles": Role}
    return {name: model.objects.of(tenant_id).count() for name, model in kinds.items()}


@step_of(Job.Type.TENANT_DELETION)
def next_step(job: Job) -> bool | Pause:
    """Run the next step of a deletion. The job's row is locked."""
    tenant = Tenant.objects.get(pk=job.tenant_id)
    if tenant.status != Tenant.Status.DELETING or tenant.deletion_started_at is None:
        return False
    grace = tenant.deletion_started_at + timedelta(days=settings.TENANT_DELETION_GRACE_DAYS) - timezone.now()
    if grace > timedelta(0):
        return Pause(grace.total_seconds())
    if "begun" not in job.parameters:
        job.parameters["begun"] = timezone.now().isoformat()
        end_other_jobs(job, "The tenant is being deleted.")
        return True
    if "emptied" not in job.parameters:
        if not _delete_children(job) and not _delete_credentials(job):
            job.parameters["emptied"] = timezone.now().isoformat()
        return True
    return _drained(job)


def _delete_children(job: Job) -> int:
    """Delete a chunk of the tenant's rows, and record an event for each row."""
    for deletion, model in _CHILDREN:
        deleted = deletion.next_of(model.objects.of(job.tenant_id), CHUNK_ROWS)
        if deleted:
            count_deleted(job, deleted)
            return deleted
    return 0


def _delete_credentials(job: Job) -> int:
    """Delete a chunk of credentials, which no login can use any more."""
    for table in coverage().ordered:
        if table.is_credential:
            keys = list(table.rows(job.tenant_id).order_by("pk").values_list("pk", flat=True)[:CHUNK_ROWS])
            if keys:
                table.rows(job.tenant_id).filter(pk__in=keys).delete()
                return len(keys)
    return 0


def _drained(job: Job) -> bool | Pause:
    emptied = parse_datetime(job.parameters["emptied"]) or timezone.now()
    waited = (timezone.now() - emptied).total_seconds()
    is_drained = tenant_is_drained(job.tenant_id)
    if not is_drained and waited < settings.TENANT_DRAIN_SECONDS:
        return Pause(min(_DRAIN_POLL_SECONDS, settings.TENANT_DRAIN_SECONDS))
    if not is_drained:
        job.status_details = "Some event streams had not delivered all events within the time limit."
    tenant = locked_tenant(job.tenant_id)
    days = settings.EVENTS_RETENTION_DAYS if tenant.event_retention_days is None else tenant.event_retention_days
    tenant.purge_after = timezone.now() + timedelta(days=days)
    move(tenant, Tenant.Status.DELETED)
    return False


def _make_job(tenant_id: str) -> Job:
    total = sum(what_hangs_on_tenant(tenant_id).values())
    return make_deletion_job(Job.Type.TENANT_DELETION, tenant_id, tenant_id, deleted=0, total=total, name=tenant_id)
