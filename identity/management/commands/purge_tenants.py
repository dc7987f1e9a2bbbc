"""`manage.py purge_tenants`: delete the last rows of deleted tenants whose log is old enough. A scheduled task does this every hour."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from identity.models import Tenant
from identity.services.tenant_purge import PurgeBlocked, due_tenants, purge_tenant


class Command(BaseCommand):
    help = "Purge the deleted tenants that are due: all their rows are deleted, their hosts are free, and their ids are never reused."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--list", action="store_true", help="List the deleted tenants and the times at which they are due, without purging."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["list"]:
            for tenant in Tenant.objects.filter(status=Tenant.Status.DELETED).order_by("purge_after"):
                self.stdout.write(f"{tenant.pk}  due {tenant.purge_after:%Y-%m-%d %H:%M} UTC")
            return
        blocked = []
        for tenant_id in due_tenants():
            try:
                purge_tenant(tenant_id)
            except PurgeBlocked as error:
                blocked.append(f"{tenant_id}: {error}")
            else:
                self.stdout.write(f"{tenant_id} is purged.")
        if blocked:
            raise CommandError(" ".join(blocked))
