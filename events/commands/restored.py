"""`manage.py events restored`: begins new epochs after the database was restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.core.management.base import CommandError, CommandParser, OutputWrapper

from events.log import database_identity, restoring, timelines
from events.log.numbering import open_connection
from events.log.restoring import LogState

HELP = """Tell the service that its database was restored, and begin a new epoch of each log.

Run the command once after a restore from a backup, a recovery to a point in time or a failover that lost commits, before clients
reach the service again. Restart web and worker processes that ran during the restore.

Effects on each log:
  - The log begins a new epoch. A request with an earlier cursor gets 410, and open streams end with `cursor_expired`:
    clients must read all resources again. With an old cursor, a client could resume beyond the lost events and
    silently miss new events at the same positions.
  - Event streams to destinations continue from their own positions, which were restored with the log. If only some of
    the tables were restored, the position of a stream can be beyond the head: then the stream is reset to the head, and
    its deliveries beyond the head are deleted.
Limits:
  - Changes that the restore lost remain at destinations that had received them. A user whose creation was lost still
    has an account there: compare the destination with the users of this service.
  - Events in the backup that were delivered after the backup was made can be delivered again with the same ids.

With --all, the command also stores the identity of this database. At each start, the service compares the stored
identity with that of the database. If the service reports a difference, and you know that nothing was lost (a planned
switchover, an upgrade of PostgreSQL, a move), use --nothing-lost: cursors stay valid, and only the stored identity
changes.

  manage.py events restored --all             shows the effects and asks for confirmation
  manage.py events restored --all --yes       in a runbook
  manage.py events restored --tenant acme     only the rows of one tenant were restored
  manage.py events restored --nothing-lost    the database moved, but no events were lost
"""
_SHOWN = 20


def add_arguments(parser: CommandParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--tenant", help="Id of a tenant: only the log of this tenant begins a new epoch.")
    which.add_argument("--all", action="store_true", help="Begin a new epoch of the logs of all tenants.")
    which.add_argument("--nothing-lost", action="store_true", help="Keep all cursors valid; only store the identity of this database.")
    parser.add_argument("--yes", action="store_true", help="Do not ask for confirmation.")


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> int:
    if options["nothing_lost"]:
        return _note(stdout, stderr)
    states = restoring.log_states(options["tenant"])
    if not states:
        raise CommandError(f"Tenant {options['tenant']} has no log." if options["tenant"] else "There are no logs.")
    _require_whole(states)
    _explain(states, stdout)
    if not options["yes"] and not _confirmed():
        stderr.write("Nothing was changed.")
        return 1
    epochs = [epoch for state in states if (epoch := restoring.start_over(state.tenant_id)) is not None]
    stdout.write(f"Logs started over: {len(epochs):,}.")
    if options["all"]:
        return _note(stdout, stderr)
    return _remind(stdout)


def _require_whole(states: Sequence[LogState]) -> None:
    broken = [f"{state.tenant_id} (head {state.head:,}, last entry {state.last_entry})" for state in states if not state.is_whole]
    if broken:
        raise CommandError(
            f"The head and the entries of these logs are not from the same point in time: {', '.join(broken[:_SHOWN])}. "
            "Nothing was changed. Restore all tables from one backup."
        )


def _explain(states: Sequence[LogState], stdout: OutputWrapper) -> None:
    for state in states[:_SHOWN]:
        entries = state.head - state.floor
        stdout.write(f"{state.tenant_id}: {entries:,} events up to position {state.head:,}, the last recorded at {state.recorded_at}")
    if len(states) > _SHOWN:
        stdout.write(f"... and {len(states) - _SHOWN:,} more logs")
    for state in states:
        for effect in state.effects:
            stdout.write(f"{state.tenant_id}: {effect}")
    stdout.write(f"Logs that begin a new epoch: {len(states):,}. From then on, each request with an earlier cursor gets 410.")


def _confirmed() -> bool:
    try:
        return input("Type yes to continue: ").strip().lower() == "yes"
    except EOFError:
        return False


def _note(stdout: OutputWrapper, stderr: OutputWrapper) -> int:
    try:
        with open_connection() as database:
            identity = database_identity.note(database)
            timelines.confirm(database, identity)
            stdout.write(f"Noted this database: {identity}.")
    except psycopg.Error as error:
        stderr.write(f"The database server does not report its identity, so the check at start is skipped: {str(error).splitlines()[0]}")
    return 0


def _remind(stdout: OutputWrapper) -> int:
    difference = database_identity.compare_at_start()
    if difference is not None:
        stdout.write("The stored identity is that of another database. If the logs of all tenants were restored, use --all.")
    return 0
