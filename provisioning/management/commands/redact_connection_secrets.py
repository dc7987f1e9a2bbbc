"""`manage.py redact_connection_secrets`: removes the connection secrets that old versions recorded in events, and lists these secrets."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from events.models import Head
from provisioning.redaction_run import RedactionReport, redact

_HELP = """Remove secret options of connections from the event log, dead letters, attempts and the audit log, and list secrets to rotate.

Earlier versions stored options such as twilio_token, gateway_authentication.secret, decryptionKey, signing_key and configuration in
plaintext, returned them in responses, and recorded them in connection events. A migration encrypts these options in
the rows of connections. This command removes them from the other tables.

Without --apply, the command changes nothing. It shows the number of rows per table with such values, and the names of the secrets.
With --apply, the command rewrites these rows while the service runs, each row in a separate statement:
  - Events: the secret members are removed from the options; id, position, time and other members do not change. This is the only
    exception to the rule that the bytes of an event are final (docs/adr/0007, 0075): a client that reads an event again gets fewer
    members.
  - Dead letters, and exchanges and messages of attempts: the secrets are removed. A truncated request body is removed completely.
  - Entries of the audit log: the values are replaced by "(hidden)".
  - Rows of connections that a process of an earlier version wrote after the migration: the rows are encrypted, and an event is recorded
    for each row.
  - Web processes drop their cached frames of the rewritten events.
If the command was interrupted, run it again: it continues with the remaining rows. The audit log of each tenant keeps the list of secrets.

The command cannot remove the secrets from clients and destinations that received the events, from backups, from lagging replicas, and
from the old versions of rows that PostgreSQL keeps until VACUUM.
Therefore rotate every listed secret at its provider, then enter the new value.

  manage.py redact_connection_secrets                    show the affected rows and secrets
  manage.py redact_connection_secrets --apply            rewrite the rows
  manage.py redact_connection_secrets --tenant acme      only rows of one tenant
"""


class Command(BaseCommand):
    help = _HELP

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--apply", action="store_true", help="Rewrite the rows; without this option, the command only counts them.")
        parser.add_argument("--tenant", help="Id of a tenant; other tenants are not searched.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = options["tenant"]
        if tenant_id is not None and not Head.objects.filter(pk=tenant_id).exists():
            raise CommandError(f"The tenant {tenant_id} has no log.")
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
            self.stdout.write(f"{silent} web processes did not confirm that they dropped old frames: restart all web processes.")
        elif report.silent_processes:
            self.stdout.write(
                "Every web process that Redis reaches dropped its old frames. If you do not use Redis, restart the web processes."
            )
