"""`manage.py delete_tenant ID`: delete the rows of a tenant, and record the deletions as events. Its log is purged later."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from identity.models import Job, Tenant
from identity.services import tenant_deletion
from identity.services.deletions import percentage
from identity.services.failures import ServiceError
from identity.services.jobs import run_job

_LOOK_SECONDS = 1.0


class Command(BaseCommand):
    help = (
        "Delete a tenant: its hosts answer 403 at once, all its rows are deleted, and its streams deliver the events of the deletions. "
        "The log is kept for the retention of the tenant; the command purge_tenants then deletes the last rows. "
        "If delete_tenant is interrupted, the workers continue."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", help="Id of the tenant.")
        parser.add_argument("--yes", action="store_true", help="Skip the confirmation.")
        parser.add_argument("--restore", action="store_true", help="Cancel the deletion, if nothing was deleted yet.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = options["tenant"]
        if not Tenant.objects.filter(pk=tenant_id).exists():
            raise CommandError(f"There is no tenant {tenant_id}.")
        try:
            if options["restore"]:
                self.stdout.write(f"{tenant_id} is {tenant_deletion.restore(tenant_id=tenant_id).status}.")
                return
            if not options["yes"]:
                self._confirm(tenant_id)
            job = tenant_deletion.start(tenant_id=tenant_id)
        except ServiceError as refusal:
            raise CommandError(str(refusal)) from refusal
        self._work(job, Console(file=self.stdout, no_color=options["no_color"]))  # type: ignore[arg-type]  # Django's wrapper is a text stream
        self._report(job)

    def _confirm(self, tenant_id: str) -> None:
        for name, number in tenant_deletion.what_hangs_on_tenant(tenant_id).items():
            self.stdout.write(f"{name:<14}{number:>12,}")
        if input(f"All of this will be deleted. Type {tenant_id} to continue: ") != tenant_id:
            raise CommandError("Nothing was deleted.")

    def _work(self, job: Job, console: Console) -> None:
        """Run the job in addition to the workers, until the job ends, or until it only waits for a later day."""
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, disable=not self.stdout.isatty()) as progress:
            task = progress.add_task(f"Deleting {job.target}", total=100)
            while not job.is_finished:
                is_waiting = run_job(job.pk, chunks=1)
                job.refresh_from_db()
                progress.update(task, completed=percentage(job), description=_description(job))
                if is_waiting and "begun" not in job.parameters:
                    return
                if is_waiting and not job.is_finished:
                    time.sleep(_LOOK_SECONDS)

    def _report(self, job: Job) -> None:
        if job.status == Job.Status.FAILED:
            raise CommandError(f"{job.pk}: {job.status_details}")
        tenant = Tenant.objects.get(pk=job.tenant_id)
        if tenant.status == Tenant.Status.DELETED:
            note = f" {job.status_details}" if job.status_details else ""
            self.stdout.write(f"{tenant.pk} is deleted. Its log is kept until {tenant.purge_after:%Y-%m-%d %H:%M} UTC.{note}")
        else:
            self.stdout.write(f"{tenant.pk} is suspended. The workers delete it when the time to cancel the deletion is over.")


def _description(job: Job) -> str:
    return f"Waiting for the streams of {job.target}" if "emptied" in job.parameters else f"Deleting {job.target}"
