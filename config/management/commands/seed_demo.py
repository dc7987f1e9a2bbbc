"""`manage.py seed_demo`: create the rows that `make up` needs. Idempotent: a second run resets what has changed."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from config import env
from config.demonstration.demo import DemoSecrets, ForeignTenants, make_demo
from config.launcher.directories import write_private
from config.schema.restoring import restore_schema
from events.record import tripwire
from identity.services.database_strategy import StrategyChanged, refuse_changed_strategy

_SECRETS = {
    "DEMO_ADMIN_PASSWORD": "admin_password",
    "DEMO_CLIENT_SECRET": "client_secret",
    "DEMO_SCIM_BASE_URL": "scim_base_url",
    "DEMO_SCIM_TOKEN": "scim_token",
    "DEMO_APPLICATION_SECRET": "application_secret",
    "DEMO_USER_PASSWORD": "user_password",
}


class Command(BaseCommand):
    help = "Create the demo tenant with its admin, client, connections and stream. DEMO_* variables contain the secrets."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--migrate", action="store_true", help="Apply migrations first.")
        parser.add_argument("--facts", type=Path, help="Write ids and accounts of the demo to this file, as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["migrate"]:
            _migrate()
        try:
            refuse_changed_strategy()
        except StrategyChanged as refusal:
            raise CommandError(str(refusal)) from refusal
        facts = self._made()
        if options["facts"]:
            write_private(options["facts"], json.dumps(facts))

    def _made(self) -> dict[str, str]:
        values = {field: env.secret(name, "", "Given to the demo by `make up`.") for name, field in _SECRETS.items()}
        if not settings.LOCALHOST_TENANT or not all(values.values()):
            raise CommandError(f"LOCALHOST_TENANT, {', '.join(_SECRETS)} must be set; `make up` sets them.")
        try:
            demo = make_demo(tenant_id=settings.LOCALHOST_TENANT, secrets=DemoSecrets(**values))
        except ForeignTenants:
            self.stdout.write("The database contains other tenants: no demo data was created.")
            return {}
        self.stdout.write(f"The demo tenant {demo.tenant} is complete.")
        return asdict(demo)


def _migrate() -> None:
    connection.ensure_connection()
    restore_schema(connection.connection)
    # `migrate` reads every model and permission even if no migration is pending. In this case skip it, for a fast start.
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)
    else:
        # The triggers depend on `events.record.catalogue`, which can change without a migration.
        tripwire.install()
