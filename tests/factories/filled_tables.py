"""Tables filled with rows of several tenants, for tests and measurements of the cost of lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, models

from identity.models import Tenant

# Columns that must be unique because of an index over an expression. The database catalog does not name these columns.
_ALSO_UNIQUE = {"identity_user": {"email", "username", "phone_number"}, "identity_group": {"name"}, "identity_role": {"name"}}
_FAR = 1_000_000


@dataclass(frozen=True)
class Copies:
    """The differences between the copies of a row, as SQL expressions. In the SQL, `i` is the number of a copy.

    `tenant` is the number of the copy's tenant, from zero. `key` is added to each whole number that must differ between the copies, such as
    a primary key. `values` sets columns of some tables (`table.column`) to other values; in these expressions, `seed` is the copied row.
    """

    tenant: str = "i %% cardinality(%(tenants)s::text[])"
    key: str = f"{_FAR} + i"
    values: Mapping[str, str] = field(default_factory=dict)


def fill(seeds: Iterable[models.Model], *, tenants: Sequence[Tenant], rows: int, start: int = 0, copies: Copies | None = None) -> None:
    """Write copies of each seed with the numbers `start` + 1 to `rows`. A copy refers to the copies with the same number.

    Must run in a transaction, because triggers and foreign keys are disabled with `SET LOCAL`. Tests only list the rows, so the rows need
    neither.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        numbers = {"start": start + 1, "rows": rows, "tenants": [tenant.pk for tenant in tenants]}
        for seed in seeds:
            _copy(cursor, seed, numbers, copies or Copies())
            cursor.execute(f'ANALYZE "{seed._meta.db_table}"')
        cursor.execute("SET LOCAL session_replication_role = origin")


def _copy(cursor: Any, seed: models.Model, numbers: dict[str, Any], copies: Copies) -> None:
    meta = seed._meta
    unique = _unique_columns(cursor, meta.db_table) | _ALSO_UNIQUE.get(meta.db_table, set())
    columns = [column for column in meta.concrete_fields if not getattr(column, "generated", False)]
    given = {column: copies.values.get(f"{meta.db_table}.{column.column}") for column in columns}
    values = [given[column] or _value(column, copies, is_unique=column.column in unique) for column in columns]
    names = ", ".join(f'"{column.column}"' for column in columns)
    # The highest number comes first. So if `copies.key` decreases with the number, the keys are written in ascending order.
    cursor.execute(
        f'INSERT INTO "{meta.db_table}" ({names}) SELECT {", ".join(values)} '  # noqa: S608  # names of columns
        f'FROM "{meta.db_table}" seed, generate_series(%(rows)s, %(start)s, -1) AS i WHERE seed."{meta.pk.column}" = %(key)s',
        {**numbers, "key": seed.pk},
    )


def _unique_columns(cursor: Any, table: str) -> set[str]:
    cursor.execute(
        "SELECT DISTINCT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey) "
        "WHERE indisunique AND indrelid = %s::regclass",
        [table],
    )
    return {name for (name,) in cursor.fetchall()}


def _value(column: Any, copies: Copies, *, is_unique: bool) -> str:
    own = f'seed."{column.column}"'
    if column.name in ("tenant", "tenant_id") and not (column.primary_key and column.remote_field is None):
        return f"(%(tenants)s::text[])[1 + {copies.tenant}]"
    if isinstance(column, models.DateTimeField):
        return f"{own} - i * interval '1 second'"
    if not (is_unique or column.is_relation):
        return own
    target = column.target_field if column.is_relation else column
    if isinstance(target, models.IntegerField):
        return f"{own} + {copies.key}"
    if isinstance(target, models.UUIDField):
        return f"md5({own}::text || i)::uuid"
    if isinstance(target, models.CharField | models.TextField):
        return numbered(own, "i", length=target.max_length or 200)
    if isinstance(target, models.BinaryField):
        return f"decode(repeat(md5(i::text), greatest(1, octet_length({own}) / 16)), 'hex')"
    return own


def numbered(text: str, number: str, *, length: int) -> str:
    """Return the SQL of a text that ends with the number of the copy, limited to the length of the column."""
    return f"left({text}, {length - 8}) || lpad(({number})::text, 8, '0')"
