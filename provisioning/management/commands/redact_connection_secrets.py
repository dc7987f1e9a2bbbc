"""`manage.py redact_connection_secrets`: takes secrets of connections out of what earlier versions published, and lists them."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from events.models import Head
from provisioning.redaction_run import RedactionReport, redact

_HELP = """Take secret options of connections out of the log, dead letters, attempts and the audit log, and list what must be rotated.

Earlier versions kept options such as twilio_token, gateway_authentication.secret, decryptionKey, signing_key and configuration in
clear, returned them, and published them in connection events. The migration seals the rows. This command rewrites the rest.

Without --apply nothing is changed: it shows how many rows of each table hold such values, and which secrets they are.
With --apply it rewrites them, beside a running service, each row in a statement of its own:
  - Events keep their id, position, time and everything else; the options lose the secret members. This is the one exception to
    the rule that the bytes of an event are final (docs/adr/0007, 0075): a client that reads them again sees fewer members.
  - Dead letters and what attempts kept of exchanges and messages likewise. A request body that was cut is dropped whole.
  - Entries of the audit log show "(hidden)" in their place.
  - Rows that an older process wrote after the migration are sealed, each with its event.
  - Web processes drop what they keep of these logs in memory.
Stopped, start it again: it goes on with what is left. The list of secrets is also kept in the audit log of each tenant.

What it cannot reach: clients and destinations that received the events, backups, replicas that lag, and the dead rows that
PostgreSQL keeps until VACUUM. So rotate every secret of the list at its provider, then enter the new value.

  manage.py redact_connection_secrets                    what would be changed, and the secrets
  manage.py redact_connection_secrets --apply            change it
  manage.py redact_connection_secrets --tenant acme      only what belongs to one tenant
"""


class Command(BaseCommand):
    help = _HELP

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--apply", action="store_true", help="Rewrite the rows; without it they are only counted.")
        parser.add_argument("--tenant", help="Id of the only tenant whose rows are looked at.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = options["tenant"]
        if tenant_id is not None and not Head.objects.filter(pk=tenant_id).exists():
            raise CommandError(f"There is no log of a tenant {tenant_id}.")
        report = redact(tenant_id=tenant_id, is_applied=options["apply"])
        self._tell_counts(report, is_applied=options["apply"])
        self._tell_secrets(report)
        self._tell_processes(report)

    def _tell_counts(self, report: RedactionReport, *, is_applied: bool) -> None:
        self.stdout.write("Rewritten:" if is_applied else "Would be rewritten (nothing was changed; add --apply):")
        for table in ("connections", "events", "dead letters", "attempts and deliveries", "marks", "audit log"):
            self.stdout.write(f"{report.counts[table]:>10,} {table}")

    def _tell_secrets(self, report: RedactionReport) -> None:
        tenants = report.findings.tenants()
        if not tenants:
            self.stdout.write("No secret was readable.")
            return
        self.stdout.write("Rotate (tenant, connection, path):")
        for tenant_id in tenants:
            for connection_id, path, finding in report.findings.of(tenant_id):
                use = "in use now" if finding.is_in_use else "not in use now"
                kind = "" if finding.is_declared else ", not known to the strategy"
                self.stdout.write(f"  {tenant_id} {connection_id} {path}: in {', '.join(sorted(finding.tables))}; {use}{kind}")

    def _tell_processes(self, report: RedactionReport) -> None:
        silent = sum(report.silent_processes.values())
        if silent:
            self.stdout.write(f"{silent} web processes did not say that they dropped old frames: restart them.")
        elif report.silent_processes:
            self.stdout.write("Every web process that Redis reaches dropped its old frames. Without Redis, restart web processes.")
