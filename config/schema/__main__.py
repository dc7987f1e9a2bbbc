"""`make schema`: apply every migration to a private server, and write the schema. With `--check`, compare it with the file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import psycopg

from config.launcher.programs import MissingProgram, postgres_directories
from config.launcher.servers import VARIABLES, temporary_servers
from config.schema import dump
from config.schema.restoring import run_statements


def main(*, is_check: bool) -> int:
    """Write `config/schema/schema.sql`, or compare it with the result of the migrations; return the exit status."""
    made = _made_by_migrations()
    if not is_check:
        dump.FILE.write_text(made.text())
        print(f"{dump.FILE.relative_to(dump.ROOT)} is written, for PostgreSQL {made.server}.")
        return 0
    if dump.read() == made:
        return 0
    print(f"{dump.FILE.relative_to(dump.ROOT)} differs from the result of the migrations: run make schema, and commit the file.")
    return 1


def _made_by_migrations() -> dump.SchemaDump:
    # The dump is always made by the embedded server, even if the developer uses another server.
    for name in VARIABLES:
        os.environ.pop(name, None)
    with temporary_servers() as addresses:
        environment = os.environ | addresses | {"DJANGO_SETTINGS_MODULE": "config.settings.test"}
        _run([sys.executable, str(dump.ROOT / "manage.py"), "migrate", "--verbosity", "0"], env=environment)
        migrated = made_dump(addresses["DATABASE_URL"])
        # PostgreSQL prints some conditions differently after a restore, so restore the first dump and dump again. A further restore would
        # not change the second dump.
        with psycopg.connect(addresses["DATABASE_URL"], dbname="postgres") as connection:
            run_statements(connection, migrated)
            connection.commit()
            return made_dump(f"{addresses['DATABASE_URL']}&dbname=postgres")


def made_dump(database_url: str) -> dump.SchemaDump:
    """Return the dump of a migrated database without any rows of tenants. Raises `MissingProgram` without pg_dump."""
    places = postgres_directories()
    pg_dump = next((place / "pg_dump" for place in places.found if (place / "pg_dump").is_file()), None)
    if pg_dump is None:
        raise MissingProgram(f"pg_dump was not found. Tried: {'; '.join(places.tried)}.")
    options = ["--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=1000", f"--dbname={database_url}"]
    printed = _run([str(pg_dump), *options]).stdout
    with psycopg.connect(database_url) as connection:
        server = connection.info.server_version // 10000
    return dump.SchemaDump(sources=dump.sources_digest(), server=server, statements=dump.statements_of(printed))


def _run(command: list[str], env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: python -m config.schema [--check]")
    sys.exit(main(is_check=bool(sys.argv[1:])))
