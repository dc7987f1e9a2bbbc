"""`manage.py export_users`: every user of a tenant as lines of JSON, and the cursor from which the stream goes on."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from identity.models import Tenant
from identity.services.exports import export_cursor, exported_users


class Command(BaseCommand):
    help = (
        "Write the users of a tenant to standard output, one JSON object per line. The cursor taken before the first user is "
        "written to standard error: subscribe with from=<cursor>, and export plus stream has no gap."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, help="Id of the tenant.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not Tenant.objects.filter(pk=options["tenant"]).exists():
            raise CommandError(f"There is no tenant {options['tenant']}.")
        cursor = export_cursor(options["tenant"])
        count = 0
        for document in exported_users(tenant_id=options["tenant"]):
            self.stdout.write(json.dumps(document, ensure_ascii=False))
            count += 1
            if count % 10_000 == 0 and sys.stderr.isatty():
                self.stderr.write(f"{count:,} users ...")
        self.stderr.write(f"{count:,} users; events cursor: {cursor}")
