"""Makes the database larger: adds tenants, streams of the delivery engine, and rows of a log."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from benchmarks.stream.world import Member, World
from events.log.numbering import open_connection
from events.models import EventStream
from provisioning.services.actions import create_action

# Rows that one statement inserts: few enough that the printed progress changes often.
_ROWS_PER_STATEMENT = 1_000_000
_DAYS = 30
_TABLES = (
    "events_event",
    "events_logentry",
    "events_head",
    "events_eventstream",
    "identity_tenant",
    "identity_customdomain",
    "authapi_client",
)
# The copies differ in id, user and time, and are older than the copied event.
_COPY_EVENTS = f"""
INSERT INTO events_event (event_id, tenant_id, type, root, time, body)
SELECT 'evt_' || left(md5(%(salt)s || i), 22), seed.tenant_id, seed.type, 'user:database|' || md5((i %% 50000)::text),
    seed.time - ({_DAYS} * interval '1 day') * (1 - i / %(most)s::float), seed.body
FROM events_event seed, generate_series(%(start)s + 1, %(end)s) AS i WHERE seed.id = %(seed)s ORDER BY i
"""  # noqa: S608  (a constant)
_COPY_ENTRIES = """
INSERT INTO events_logentry (event_id, tenant_id, position, recorded_at)
SELECT id, tenant_id, %(position)s + row_number() OVER (ORDER BY id), time FROM events_event WHERE tenant_id = %(tenant)s AND id > %(last)s
"""
_SEED = "SELECT event_id FROM events_logentry WHERE tenant_id = %s ORDER BY position DESC LIMIT 1"
_RAISE_HEAD = "UPDATE events_head SET position = %(position)s WHERE tenant_id = %(tenant)s"


def grow_log(member: Member, *, start: int, rows: int, most: int) -> None:
    """Add copies of the newest event to the tenant's log: the copies with the numbers `start` + 1 to `rows`.

    The times of the copies are such that `most` copies would be spread over 30 days.
    """
    with open_connection() as database:
        database.execute("SET statement_timeout = 0")
        for begin in range(start, rows, _ROWS_PER_STATEMENT):
            with database.transaction():
                _add_rows(database, member.tenant_id, begin, min(begin + _ROWS_PER_STATEMENT, rows), most)
            print(f"  {min(begin + _ROWS_PER_STATEMENT, rows):,} rows in the log", flush=True)
    settle()


def _add_rows(database: psycopg.Connection, tenant_id: str, start: int, end: int, most: int) -> None:
    database.execute("SET LOCAL synchronous_commit = off")
    (position,) = _row(database, "SELECT position FROM events_head WHERE tenant_id = %s FOR UPDATE", [tenant_id])
    (seed,) = _row(database, _SEED, [tenant_id])
    (last,) = _row(database, "SELECT max(id) FROM events_event")
    database.execute(_COPY_EVENTS, {"seed": seed, "salt": tenant_id, "start": start, "end": end, "most": most})
    values = {"tenant": tenant_id, "position": position, "last": last}
    database.execute(_COPY_ENTRIES, values)
    database.execute(_RAISE_HEAD, {**values, "position": position + end - start})


def grow_delivery_streams(world: World, *, start: int, count: int) -> None:
    """Add enabled streams with a deployed action, ten for each tenant."""
    made: list[EventStream] = []
    for member in world.members(-(-count // 10))[start // 10 :]:
        sealed = {"SCIM_BASE_URL": "http://127.0.0.1:9", "SCIM_BEARER_TOKEN": "token"}
        action = create_action(tenant_id=member.tenant_id, name="scim", template="scim-user-provisioning", secrets=sealed, deploy=True)
        # No event of the measurement has this type, so nothing is delivered through these streams.
        fields = {"subscriptions": ["organization.deleted"], "destination_type": "action", "destination": {"action_id": str(action.pk)}}
        made += [EventStream(tenant_id=member.tenant_id, name=None, **fields) for _ in range(min(10, count))]
    EventStream.all_tenants.bulk_create(made)
    settle()


def settle(tables: Sequence[str] = _TABLES) -> None:
    """Let the database do its pending maintenance now, so that none happens during a measurement."""
    with open_connection() as database:
        database.execute("SET statement_timeout = 0")
        for table in tables:
            database.execute(psycopg.sql.SQL("VACUUM ANALYZE {}").format(psycopg.sql.Identifier(table)))
        database.execute("CHECKPOINT")


def _row(database: psycopg.Connection, statement: str, values: Sequence[object] = ()) -> tuple[int, ...]:
    row = database.execute(statement, values).fetchone()
    assert row is not None
    return tuple(row)
