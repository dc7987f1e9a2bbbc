"""A platform after a month: one large tenant with nine tenths of all rows, and fifty small tenants. Most deliveries and jobs have ended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from django.db import connection, connections, models, transaction

from events.log.numbering import number_tenant
from events.models import Event, EventStream, Head, LogEntry
from identity.models import Connection, Tenant, User
from tests.factories.admin import Rows, new_tenant
from tests.factories.filled_tables import Copies, fill, numbered
from tests.factories.identity import make_user

_SMALL_TENANTS = 50
_STREAMS = 5
# All copies have lower primary keys than this number, without gaps. The rows from which the copies are made (`seeds`) have far lower
# primary keys. The positions of these rows are below the floor of each log, so no measured log contains them.
_MOST = 2_000_000
_MONTH = 30 * 86_400
# Every tenth row belongs to a small tenant, all other rows to the first tenant.
_TENANT = f"CASE WHEN i %% 10 = 0 THEN 1 + (i / 10) %% {_SMALL_TENANTS} ELSE 0 END"


@dataclass(frozen=True)
class Platform:
    """The tenants, and for each model the row from which all copies are made (`seeds`)."""

    tenants: list[Tenant]
    seeds: Rows
    seconds: float

    @classmethod
    def make(cls, rows: int) -> Platform:
        """Create the tenants and their small tables. Later, all other tables get `rows` rows, spread over a month."""
        tenants = [new_tenant() for _ in range(1 + _SMALL_TENANTS)]
        seeds = Rows(tenants[0])
        user = make_user(connection=seeds.of(Connection), email="ada@example.test", name="Ada Lovelace", nickname="Countess")
        number_tenant(tenants[0].pk)
        seeds.made[User] = user
        seeds.made[LogEntry] = LogEntry.objects.filter(tenant_id=tenants[0].pk).select_related("event").latest("position")
        seeds.made[Event] = seeds.made[LogEntry].event
        with transaction.atomic():
            fill([seeds.of(Connection)], tenants=tenants, rows=len(tenants), copies=Copies(tenant="i - 1"))
            fill([seeds.of(EventStream)], tenants=tenants, rows=_STREAMS, copies=Copies(tenant="0"))
        return cls(tenants, seeds, _MONTH / rows)

    def fill(self, listed: Sequence[type[models.Model]], start: int, rows: int) -> None:
        """Insert the rows with the numbers `start` + 1 to `rows` of each model, each older than the previous row; set head and floor of
        each log.
        """
        for model in listed:
            self.seeds.of(model)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(lambda model: self._fill(model, start, rows), listed))
        Head.objects.filter(pk__in=[tenant.pk for tenant in self.tenants]).update(position=_MOST, floor=_MOST - rows - 1)

    def _fill(self, model: type[models.Model], start: int, rows: int) -> None:
        seed, table = self.seeds.of(model), model._meta.db_table
        copies = Copies(_TENANT, f"{_MOST} - i", {**_times(seed, self.seconds), **_values(self.seeds)})
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 0; SET LOCAL synchronous_commit = off; SET LOCAL maintenance_work_mem = '256MB'")
            cursor.execute(_INDEXES, [table])
            indexes = cursor.fetchall()
            cursor.execute("".join(f"DROP INDEX {name};" for name, _ in indexes))
            fill([seed], tenants=self.tenants, rows=rows, start=start, copies=copies)
            cursor.execute("".join(f"{definition};" for _, definition in indexes))
        with connection.cursor() as cursor:
            # Vacuum now; otherwise autovacuum would vacuum the table during a measurement.
            cursor.execute("SET statement_timeout = 0")
            cursor.execute(f'VACUUM ANALYZE "{table}"')
        connections.close_all()


# These indexes are rebuilt after all rows are inserted, because an update of the index for each row would take longer.
_INDEXES = "SELECT indexrelid::regclass, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %s::regclass AND NOT indisunique"


def _times(seed: models.Model, seconds: float) -> dict[str, str]:
    """Space the times of the copies this many seconds apart."""
    table = seed._meta.db_table
    times = [column.column for column in seed._meta.concrete_fields if isinstance(column, models.DateTimeField)]
    return {f"{table}.{column}": f"seed.{column} - i * interval '{seconds} seconds'" for column in times}


def _values(seeds: Rows) -> dict[str, str]:
    own_connection = _copy_of(seeds.of(Connection), f"1 + {_TENANT}")
    own_stream = _copy_of(seeds.of(EventStream), f"1 + i %% {_STREAMS}")
    user_key = "'user:database|' || md5((i %% 50000)::text)"
    error = "(ARRAY['data', 'transient', 'shape'])[1 + i %% 3]"
    return {
        "identity_user.connection_id": own_connection,
        "identity_user.email": "'person' || i || '@example.test'",
        "identity_user.blocked": "CASE WHEN i %% 100 = 0 THEN true END",
        "identity_job.connection_id": own_connection,
        "identity_job.status": "CASE WHEN i <= 5 THEN 'processing' WHEN i %% 50 = 0 THEN 'failed' ELSE 'completed' END",
        "identity_job.type": "(ARRAY['users_import', 'users_export', 'verification_email'])[1 + i %% 3]",
        "identity_auditentry.object_type": "'identity.user'",
        "identity_auditentry.object_id": "(i %% 50000)::text",
        "identity_auditentry.actor_name": "'staff' || i %% 100 || '@example.test'",
        "identity_auditentry.act_id": "md5((i / 2)::text)::uuid",
        "authapi_session.connection_id": own_connection,
        "authapi_signin.type": "CASE WHEN i %% 20 = 0 THEN 'fp' ELSE 's' END",
        "authapi_signin.is_success": "i %% 20 <> 0",
        "authapi_signin.user_id": "'database|' || md5((i %% 50000)::text)",
        "events_event.root": user_key,
        "events_event.type": "CASE WHEN i %% 3 = 0 THEN 'user.created' ELSE 'user.updated' END",
        "events_logentry.position": f"{_MOST} - i",
        "provisioning_delivery.stream_id": own_stream,
        "provisioning_delivery.key": user_key,
        "provisioning_delivery.event_type": "CASE WHEN i %% 3 = 0 THEN 'user.created' ELSE 'user.updated' END",
        "provisioning_delivery.state": "CASE WHEN i <= 200 THEN 'todo' WHEN i %% 100 = 0 THEN 'dead' ELSE 'delivered' END",
        "provisioning_delivery.is_written": "i > 200 AND i %% 100 <> 0",
        "provisioning_attempt.outcome": "CASE WHEN i %% 100 = 0 THEN 'failed' ELSE 'delivered' END",
        "provisioning_attempt.error_class": f"CASE WHEN i %% 100 = 0 THEN {error} ELSE '' END",
        "provisioning_deadletter.stream_id": own_stream,
        "provisioning_deadletter.key": user_key,
        "provisioning_deadletter.state": "CASE WHEN i %% 10 < 2 THEN 'open' WHEN i %% 10 = 2 THEN 'acknowledged' ELSE 'resolved' END",
        "provisioning_deadletter.error_class": error,
        "provisioning_deadletter.fingerprint": "md5((i %% 20)::text)",
    }


def _copy_of(row: models.Model, number: str) -> str:
    key: Any = row._meta.pk
    return numbered(f"'{row.pk}'", number, length=key.max_length)
