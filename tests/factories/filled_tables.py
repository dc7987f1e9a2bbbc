"""Tables filled with rows of several tenants, for tests of what a list costs; all in a transaction that is rolled back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection, models

from identity.models import Tenant

# What an index over an expression makes unique beside the columns that the catalogue names.
_ALSO_UNIQUE = {"identity_user": {"email", "username", "phone_number"}, "identity_group": {"name"}, "identity_role": {"name"}}
_FAR = 1_000_000


def fill(seeds: Iterable[models.Model], *, tenants: Sequence[Tenant], rows: int) -> None:
    """Write `rows` copies of each seed, taking turns between the tenants; a copy refers to the copies with its number."""
    with connection.cursor() as cursor:
        # Neither triggers nor foreign keys: the rows are here to be listed.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for seed in seeds:
            _copy(cursor, seed, [tenant.pk for tenant in tenants], rows)
            cursor.execute(f'ANALYZE "{seed._meta.db_table}"')
        cursor.execute("SET LOCAL session_replication_role = origin")


def _copy(cursor: Any, seed: models.Model, tenants: list[str], rows: int) -> None:
    meta = seed._meta
    unique = _unique_columns(cursor, meta.db_table) | _ALSO_UNIQUE.get(meta.db_table, set())
    columns = [column for column in meta.concrete_fields if not getattr(column, "generated", False)]
    values = [_value(column, is_unique=column.column in unique) for column in columns]
    names = ", ".join(f'"{column.column}"' for column in columns)
    cursor.execute(
        f'INSERT INTO "{meta.db_table}" ({names}) SELECT {", ".join(values)} '  # noqa: S608  # names of columns
        f'FROM "{meta.db_table}" seed, generate_series(1, %(rows)s) AS i WHERE seed."{meta.pk.column}" = %(key)s',
        {"rows": rows, "key": seed.pk, "tenants": tenants},
    )


def _unique_columns(cursor: Any, table: str) -> set[str]:
    cursor.execute(
        "SELECT DISTINCT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey) "
        "WHERE indisunique AND indrelid = %s::regclass",
        [table],
    )
    return {name for (name,) in cursor.fetchall()}


def _value(column: Any, *, is_unique: bool) -> str:
    own = f'seed."{column.column}"'
    if column.name in ("tenant", "tenant_id") and not (column.primary_key and column.remote_field is None):
        return "(%(tenants)s::text[])[1 + i %% cardinality(%(tenants)s::text[])]"
    if isinstance(column, models.DateTimeField):
        return f"{own} - i * interval '1 second'"
    if not (is_unique or column.is_relation):
        return own
    target = column.target_field if column.is_relation else column
    if isinstance(target, models.IntegerField):
        return f"{own} + {_FAR} + i"
    if isinstance(target, models.UUIDField):
        return f"md5({own}::text || i)::uuid"
    if isinstance(target, models.CharField | models.TextField):
        return f"left({own}, {(target.max_length or 200) - 8}) || lpad(i::text, 8, '0')"
    if isinstance(target, models.BinaryField):
        return f"decode(repeat(md5(i::text), greatest(1, octet_length({own}) / 16)), 'hex')"
    return own
