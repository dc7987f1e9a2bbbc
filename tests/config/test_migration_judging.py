"""The check of the SQL of new migrations refuses statements that block a table or break the previous version of the service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.schema.judging import BASELINE, NewMigration, problems

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ('ALTER TABLE "t" ADD COLUMN "c" integer DEFAULT 0 NOT NULL;\nALTER TABLE "t" ALTER COLUMN "c" DROP DEFAULT;', "ban-drop-default"),
        ('ALTER TABLE "t" ADD COLUMN "c" text NOT NULL;', "adding-required-field"),
        ('ALTER TABLE "t" DROP COLUMN "c" CASCADE;', "ban-drop-column"),
        ('ALTER TABLE "t" RENAME COLUMN "c" TO "d";', "renaming-column"),
        ('ALTER TABLE "t" RENAME TO "u";', "renaming-table"),
        ('ALTER TABLE "t" ALTER COLUMN "c" TYPE bigint USING "c"::bigint;', "changing-column-type"),
        ('DROP TABLE "t" CASCADE;', "ban-drop-table"),
        ('CREATE INDEX "i" ON "t" ("c");', "require-concurrent-index-creation"),
        ('ALTER TABLE "t" ADD CONSTRAINT "k" CHECK ("c" > 0);', "constraint-missing-not-valid"),
        ('ALTER TABLE "t" ADD CONSTRAINT "k" UNIQUE ("c");', "disallowed-unique-constraint"),
    ],
)
def test_a_statement_that_blocks_or_breaks_the_previous_version_is_refused(statement: str, rule: str) -> None:
    found = problems(NewMigration("app.0002", f"BEGIN;\n{statement}\nCOMMIT;\n"))

    assert any(problem.startswith(f"app.0002: {rule}: ") for problem in found), found


@pytest.mark.parametrize(
    "statement",
    [
        'ALTER TABLE "t" ADD COLUMN "c" integer DEFAULT 0 NOT NULL;',
        'ALTER TABLE "t" ADD COLUMN "c" text NULL;',
        'CREATE TABLE "n" ("id" bigint NOT NULL PRIMARY KEY, "c" varchar(3) NOT NULL UNIQUE);\nCREATE INDEX "i" ON "n" ("c");',
        'ALTER TABLE "t" ADD CONSTRAINT "k" CHECK ("c" > 0) NOT VALID;',
    ],
)
def test_a_statement_that_does_not_break_the_previous_version_is_accepted(statement: str) -> None:
    assert problems(NewMigration("app.0002", f"BEGIN;\n{statement}\nCOMMIT;\n")) == []


def test_an_index_that_is_created_concurrently_outside_a_transaction_is_accepted() -> None:
    assert problems(NewMigration("app.0002", 'CREATE INDEX CONCURRENTLY "i" ON "t" ("c");\n')) == []


def test_an_exception_needs_a_reason_and_a_rule_that_the_migration_breaks() -> None:
    dropped = 'BEGIN;\nALTER TABLE "t" DROP COLUMN "c";\nCOMMIT;\n'

    assert problems(NewMigration("app.0002", dropped, {"ban-drop-column": "Version 1.3 stopped using it."})) == []
    assert problems(NewMigration("app.0002", dropped, {"ban-drop-column": " "})) == [
        "app.0002: `reviewed` gives no reason for ban-drop-column."
    ]
    assert problems(NewMigration("app.0002", "BEGIN;\nCOMMIT;\n", {"renaming-table": "A reason."})) == [
        "app.0002: `reviewed` names renaming-table, which the migration does not break."
    ]


def test_the_baseline_names_existing_migrations_of_every_app_of_the_service() -> None:
    baseline = json.loads(BASELINE.read_text())

    assert set(baseline) == {path.parent.name for path in ROOT.glob("*/migrations")}
    assert all((ROOT / app / "migrations" / f"{name}.py").is_file() for app, name in baseline.items())


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_migrations_after_an_earlier_baseline_are_judged_on_a_private_server(tmp_path: Path) -> None:
    earlier = json.loads(BASELINE.read_text()) | {"provisioning": "0005_synchronizations"}
    (tmp_path / "baseline.json").write_text(json.dumps(earlier))
    program = (
        "import pathlib, sys; from config.schema import judging; judging.BASELINE = pathlib.Path(sys.argv[1]); sys.exit(judging.main())"
    )
    environment = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}}

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "baseline.json")],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert "provisioning.0006_dead_letters_by_key: require-concurrent-index-creation: " in done.stdout
    assert "provisioning.0005" not in done.stdout
