"""`manage.py import_users`: import users on the command line and show the progress. A stopped import resumes by its job id."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from identity.imports.import_file import BadImportFile, read_rows
from identity.imports.imports import start_import
from identity.models import Connection, Job
from identity.services.failures import ServiceError
from identity.services.jobs import run_job


class Command(BaseCommand):
    help = (
        "Import users from FILE: one JSON object per line, or one JSON array. Rows that cannot be imported are counted and kept with the "
        "reason; the other rows are imported. Example: manage.py import_users --tenant acme --connection people users.jsonl"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="File with the rows; leave it out with --resume.")
        parser.add_argument("--tenant", help="Id of the tenant.")
        parser.add_argument("--connection", help="Name of the connection of the users.")
        parser.add_argument(
            "--upsert",
            action="store_true",
            help="Overwrite users that exist. Without this option, the rows of these users count as failed.",
        )
        parser.add_argument("--resume", metavar="JOB", help="Resume a job that was stopped.")

    def handle(self, *args: Any, **options: Any) -> None:
        job = self._resumed(options["resume"]) if options["resume"] else self._started(options)
        console = Console(file=self.stdout, no_color=options["no_color"])  # type: ignore[arg-type]  # Django's wrapper is a text stream
        started = time.monotonic()
        before = job.rows_done
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]} users/s"))
        with Progress(*columns, TimeRemainingColumn(), console=console, disable=not self.stdout.isatty()) as progress:
            task = progress.add_task(f"Importing {job.pk}", total=job.summary["total"], completed=before, rate="")
            while not run_job(job.pk, chunks=1):
                job.refresh_from_db()
                rate = (job.rows_done - before) / (time.monotonic() - started)
                progress.update(task, completed=job.rows_done, rate=f"{rate:,.0f}")
        job.refresh_from_db()
        self._report(job, time.monotonic() - started)
        if job.status == Job.Status.FAILED:
            raise CommandError(job.status_details)

    def _started(self, options: dict[str, Any]) -> Job:
        if not (options["file"] and options["tenant"] and options["connection"]):
            raise CommandError("Give FILE, --tenant and --connection, or --resume JOB.")
        connection = Connection.objects.of(options["tenant"]).filter(name=options["connection"]).first()
        if connection is None:
            raise CommandError(f"The tenant {options['tenant']} has no connection {options['connection']!r}.")
        try:
            with options["file"].open("rb") as file:
                return start_import(
                    tenant_id=options["tenant"], connection_id=connection.pk, rows=read_rows(file), upsert=options["upsert"]
                )
        except BadImportFile as error:
            raise CommandError(f"{options['file']}: {error}") from error
        except (ServiceError, OSError) as error:
            raise CommandError(str(error)) from error

    def _resumed(self, job_id: str) -> Job:
        job = Job.all_tenants.filter(pk=job_id, type=Job.Type.USERS_IMPORT).first()
        if job is None:
            raise CommandError(f"There is no import {job_id}.")
        return job

    def _report(self, job: Job, seconds: float) -> None:
        counts = ", ".join(f"{job.summary[name]:,} {name}" for name in ("inserted", "updated", "failed"))
        self.stdout.write(f"{job.pk}: {job.status}, {job.summary['total']:,} rows, {counts}, {seconds:.1f} s")
        for error in job.errors.all()[:10]:
            self.stdout.write(f"  row {error.row_number}: {error.errors[0]['code']} {error.errors[0]['message']} {error.errors[0]['path']}")
