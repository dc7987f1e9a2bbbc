"""`manage.py events prune`: run the hourly pruning by hand."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from events.log import retention
from events.models import Head

HELP = """Delete events that are older than their tenant's retention.

A worker prunes every hour. The retention is the setting EVENTS_RETENTION_DAYS, or the number of days that the admin
sets for the tenant. Events of waiting deliveries, and events that an enabled event stream has not read, are kept; the
output shows the number of these events and the streams that need them.

The command prunes in transactions of at most 5,000 positions while the service runs. You can stop and repeat it at any
time. A client whose cursor is below the new floor gets 410 with the earliest cursor that is still valid.

  manage.py events prune --dry-run        what would be deleted, and what is held back
  manage.py events prune                  all tenants
  manage.py events prune --tenant acme    one tenant, for example after lowering its retention
"""
_TELL_EVERY_SECONDS = 2.0


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--tenant", help="Id of the only tenant to prune; all tenants by default.")
    parser.add_argument("--dry-run", action="store_true", help="Count the events that would be deleted, and change nothing.")


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> int:
    tenant_id, is_dry_run = options["tenant"], options["dry_run"]
    if tenant_id is not None and not Head.objects.filter(pk=tenant_id).exists():
        raise CommandError(f"Tenant {tenant_id} has no log.")
    verb = "would prune" if is_dry_run else "pruned"
    rate = _Rate(stderr)
    logs = held_back = 0
    for done in retention.prune(tenant_id, is_dry_run=is_dry_run, progress=rate.add):
        logs += done.count > 0
        held_back += done.held_back
        if is_dry_run:
            rate.count += done.count
        if done.count:
            stdout.write(f"{done.tenant_id}: {verb} {done.count:,} positions")
        if done.held_back:
            stdout.write(done.told())
        if done.is_busy:
            stdout.write(f"{done.tenant_id}: another run is pruning this log; skipped")
    stdout.write(f"{verb} {rate.count:,} positions{'' if is_dry_run else rate.told()}; logs: {logs:,}; held back: {held_back:,}")
    return 0


class _Rate:
    """Counts pruned positions, and reports the number and the rate every few seconds."""

    def __init__(self, output: OutputWrapper) -> None:
        self.count = 0
        self._output = output
        self._began = self._told_at = time.monotonic()

    def add(self, tenant_id: str, positions: int) -> None:
        self.count += positions
        now = time.monotonic()
        if now - self._told_at >= _TELL_EVERY_SECONDS:
            self._told_at = now
            self._output.write(f"{tenant_id} ... {self.count:,} positions{self.told()}")

    def told(self) -> str:
        seconds = time.monotonic() - self._began
        return f" in {seconds:.1f} s, {self.count / max(seconds, 0.001):,.0f} per second"
