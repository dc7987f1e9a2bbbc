"""`make migrations`: check the SQL of migrations after the baseline with the rules of squawk. Decision: docs/adr/0130.

A migration runs while processes of the previous version serve requests, so it must not block their tables or break their statements.
Migrations up to the baseline have been applied and are not checked. A migration that may break a rule has an attribute with the reason:
`reviewed = {"ban-drop-column": "Version 1.3 stopped using the column."}`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import django
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from config.launcher.servers import VARIABLES, temporary_servers
from config.settings.database_url import database_settings

BASELINE = Path(__file__).with_name("baseline.json")
# The oldest supported version of PostgreSQL.
_POSTGRESQL = "14"
# Rules of squawk that are not checked: `manage.py migrate` sets the timeouts, and Django chooses the types and the form of the statements.
_NOT_JUDGED = frozenset(
    {
        "prefer-bigint-over-int",
        "prefer-bigint-over-smallint",
        "prefer-identity",
        "prefer-robust-stmts",
        "prefer-text-field",
        "prefer-timestamp-tz",
        "require-lock-timeout",
        "require-statement-timeout",
    }
)
_ADVICE = {
    "ban-drop-default": "The previous version inserts rows without the column. Give the field a db_default, or null=True.",
    "adding-required-field": "The previous version inserts rows without the column. Give the field a db_default, or null=True.",
    "require-concurrent-index-creation": "Use AddIndexConcurrently in a migration of its own with atomic = False.",
    "require-concurrent-index-deletion": "Use RemoveIndexConcurrently in a migration of its own with atomic = False.",
    "constraint-missing-not-valid": "Use AddConstraintNotValid, and ValidateConstraint in the next migration.",
    "ban-drop-column": "The previous version still reads the column: stop using it in one version, and drop it in the next.",
    "ban-drop-table": "The previous version still uses the table: stop using it in one version, and drop it in the next.",
    "renaming-column": "The previous version uses the old name. Add a column, write both, and drop the old one in the next version.",
    "renaming-table": "The previous version uses the old name. Keep the table, or set db_table.",
}


@dataclass(frozen=True)
class NewMigration:
    """A migration with its SQL, and the rules that it may break, with reasons."""

    name: str
    sql: str
    reviewed: Mapping[str, str] = field(default_factory=dict)


def problems(migration: NewMigration) -> list[str]:
    """Return one sentence per broken rule, and per exception that has no reason or is not needed. Runs squawk."""
    command = [
        str(Path(sys.executable).with_name("squawk")),
        "--reporter",
        "json",
        "--pg-version",
        _POSTGRESQL,
        "--stdin-filepath",
        "new.sql",
    ]
    done = subprocess.run(command, input=migration.sql, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1} or not done.stdout.strip():
        raise RuntimeError(f"squawk failed: {done.stderr.strip()}")
    broken = [found for found in json.loads(done.stdout) if found["rule_name"] not in _NOT_JUDGED]
    return [
        *(_sentence(migration, found) for found in broken if found["rule_name"] not in migration.reviewed),
        *(f"{migration.name}: `reviewed` gives no reason for {rule}." for rule, reason in migration.reviewed.items() if not reason.strip()),
        *(
            f"{migration.name}: `reviewed` names {rule}, which the migration does not break."
            for rule in sorted(set(migration.reviewed) - {found["rule_name"] for found in broken})
        ),
    ]


def new_migrations(baseline: Mapping[str, str]) -> Iterator[NewMigration]:
    """Yield our migrations after the baseline with their SQL, in their order.

    The caller must apply each migration before it requests the next one. Django reads the names of some constraints from the database, so
    the database must be in the state before the migration.
    """
    executor = MigrationExecutor(connection)
    new = _after(executor.loader, baseline)
    executor.migrate([(app, name) for app, name in executor.loader.graph.leaf_nodes() if app not in baseline])
    executor.loader.build_graph()
    executor.migrate(list(baseline.items()))
    for key in new:
        executor.loader.build_graph()
        migration = executor.loader.graph.nodes[key]
        lines = executor.loader.collect_sql([(migration, False)])
        around = ["BEGIN;", *lines, "COMMIT;"] if migration.atomic else lines
        yield NewMigration(".".join(key), "\n".join(around) + "\n", getattr(migration, "reviewed", {}))
        executor.migrate([key])


def main() -> int:
    """Print the problems of all new migrations; return the exit status."""
    found = [problem for migration in _judged() for problem in problems(migration)]
    for problem in found:
        print(problem)
    if found:
        print('Rules and exceptions: docs/how-to/upgrade.md, "Migrations and two versions at once".')
    return 1 if found else 0


def _judged() -> Sequence[NewMigration]:
    baseline = json.loads(BASELINE.read_text())
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    django.setup()
    if not _after(MigrationLoader(None), baseline):
        return []
    for name in VARIABLES:
        os.environ.pop(name, None)
    with temporary_servers() as addresses:
        connections["default"].settings_dict.update(database_settings(addresses["DATABASE_URL"], pool_size=0))
        try:
            return list(new_migrations(baseline))
        finally:
            connections.close_all()


def _after(loader: MigrationLoader, baseline: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return our migrations after the baseline, in an order in which they can be applied."""
    graph = loader.graph
    known = {key for item in baseline.items() for key in graph.forwards_plan(item)}
    ordered = [key for leaf in graph.leaf_nodes() for key in graph.forwards_plan(leaf)]
    return [key for key in dict.fromkeys(ordered) if key not in known and key[0] in baseline]


def _sentence(migration: NewMigration, found: Mapping[str, str]) -> str:
    advice = _ADVICE.get(found["rule_name"]) or found.get("help") or ""
    statement = migration.sql.splitlines()[int(found["line"])][:200]
    return f"{migration.name}: {found['rule_name']}: {found['message']} {advice}\n  {statement}"


if __name__ == "__main__":
    sys.exit(main())
