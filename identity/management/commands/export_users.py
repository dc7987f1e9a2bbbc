"""`manage.py export_users`: write every user of a tenant as a line of JSON, and the cursor from which the stream continues."""

from __future__ import annotations

import json
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from identity.exports.exports import export_cursor, exported_users, user_count
from identity.models import Connection, Tenant


class Command(BaseCommand):
    help = (
        "Write the users of a tenant to standard output, one JSON object per line. The cursor taken before the first user is "
        "written to standard error: a stream with from=<cursor> continues the export without a gap."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, help="Id of the tenant.")
        parser.add_argument("--connection", help="Name of a connection; exports only its users.")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = {"tenant_id": options["tenant"], "connection_id": self._connection_id(options["tenant"], options["connection"])}
        cursor = export_cursor(options["tenant"])
        # Standard output contains the rows, so progress is written to standard error.
        console = Console(file=self.stderr, no_color=options["no_color"])  # type: ignore[arg-type]  # Django's wrapper is a text stream
        columns = (TextColumn("Exporting"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]} users/s"))
        started, count = time.monotonic(), 0
        with Progress(*columns, TimeRemainingColumn(), console=console, disable=not self.stderr.isatty()) as progress:
            task = progress.add_task("", total=user_count(**chosen), rate="")
            for count, document in enumerate(exported_users(**chosen), start=1):
                self.stdout.write(json.dumps(document, ensure_ascii=False))
                if count % 500 == 0:
                    progress.update(task, completed=count, rate=f"{count / (time.monotonic() - started):,.0f}")
        self.stderr.write(f"{count:,} users; events cursor: {cursor}")

    def _connection_id(self, tenant_id: str, name: str | None) -> str | None:
        if not Tenant.objects.filter(pk=tenant_id).exists():
            raise CommandError(f"There is no tenant {tenant_id}.")
        if name is None:
            return None
        connection = Connection.objects.of(tenant_id).filter(name=name).first()
        if connection is None:
            raise CommandError(f"The tenant {tenant_id} has no connection {name!r}.")
        return connection.pk
