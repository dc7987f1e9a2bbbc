"""The encrypted values of the rows of a move: decrypted at the source, and encrypted again at the target, bound to the rows there."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.db import models

from foundation.secrets import vault
from identity.moving.carrying import Pointer, Sealed
from identity.moving.failures import MoveRefused
from identity.moving.journey import Journey
from identity.moving.tables import CarriedTable, Shift

# Digests are added modulo this number. Unlike one digest of all rows, a sum does not depend on the order of the rows.
_MODULUS = 2**128
_ROWS_AT_ONCE = 1000


def secrets_of(table: CarriedTable, tenant_id: str, *, after: Any = None, last: Any = None) -> Iterator[tuple[Any, str, Pointer, str]]:
    """Yield every encrypted value in the tenant's rows after the key `after`, up to the key `last`: key, column, pointer and decrypted
    value.

    Raises `MoveRefused` for a value that cannot be decrypted here.
    """
    for sealed in table.sealed:
        rows = table.owned.rows(tenant_id).filter(sealed.holding).order_by("pk")
        rows = rows if after is None else rows.filter(pk__gt=after)
        rows = rows if last is None else rows.filter(pk__lte=last)
        for row in rows.iterator(chunk_size=_ROWS_AT_ONCE):
            for pointer, place in sealed.places(row).items():
                yield row.pk, sealed.column, pointer, _opened(table, row, sealed, pointer, place)


def seal_again(table: CarriedTable, secrets: list[Any], shift: Shift | None) -> None:
    """Encrypt values of rows that were just inserted, inside the transaction of the caller."""
    by_row: dict[str, dict[str, list[tuple[Pointer, str]]]] = {}
    for key, column, pointer, value in secrets:
        by_row.setdefault(str(_moved(key, shift)), {}).setdefault(column, []).append((tuple(pointer), value))
    columns = {sealed.column: sealed for sealed in table.sealed}
    rows: models.QuerySet[Any] = models.QuerySet(table.model).filter(pk__in=list(by_row))
    for row in rows.iterator(chunk_size=_ROWS_AT_ONCE):
        changes = {}
        for column, values in by_row[str(row.pk)].items():
            places = columns[column].places(row)
            changes[column] = with_values(getattr(row, column), [(pointer, value, places[pointer]) for pointer, value in values])
        own: models.QuerySet[Any] = models.QuerySet(table.model).filter(pk=row.pk)
        # Call the base class, because the managers of recorded models refuse updates. The triggers write marks, which the import deletes in
        # the transaction of the part.
        models.QuerySet.update(own, **changes)


def secret_sum(journey: Journey, entries: Iterator[tuple[Any, str, Pointer, str]], shift: Shift | None = None) -> tuple[int, str]:
    """Return the number of values, and the sum of their keyed digests.

    With `shift`, `entries` have the keys of rows at the target. These keys are shifted back to the keys of rows at the source.
    """
    count, total = 0, 0
    for key, column, pointer, value in entries:
        total = add_digest(total, journey, [_moved(key, shift, back=True), column, list(pointer), value])
        count += 1
    return count, f"{total:032x}"


def add_digest(total: int, journey: Journey, entry: list[Any]) -> int:
    digest = journey.fingerprint(json.dumps([str(entry[0]), *entry[1:]]))
    return (total + int(digest[:32], 16)) % _MODULUS


def add_sums(one: str, other: str) -> str:
    """Return the sum of two results of `secret_sum`."""
    return f"{(int(one or '0', 16) + int(other or '0', 16)) % _MODULUS:032x}"


def _opened(table: CarriedTable, row: Any, sealed: Sealed, pointer: Pointer, place: str) -> str:
    token = _at(getattr(row, sealed.column), pointer)
    try:
        if isinstance(token, bytes | memoryview):
            return base64.b64encode(vault.unseal_bytes(bytes(token), place=place)).decode()
        return vault.unseal(token, place=place)
    except vault.SecretUnreadable as error:
        raise MoveRefused(
            f"The encrypted value {sealed.column} of the row {row.pk} of {table.name} cannot be decrypted: {error} "
            "Add its key to ENCRYPTION_KEYS, or set the value again."
        ) from error


def _at(value: Any, pointer: Pointer) -> Any:
    for step in pointer:
        value = value[step]
    return value


def with_values(stored: Any, values: list[tuple[Pointer, str, str]]) -> Any:
    """Return the value of a column.

    Each value that the source encrypted is replaced by the same value, encrypted with a key of the target.
    """
    if isinstance(stored, bytes | memoryview):
        ((_, value, place),) = values
        return vault.seal_bytes(base64.b64decode(value), place=place)
    if not isinstance(stored, Mapping | list):
        ((_, value, place),) = values
        return vault.seal(value, place=place)
    changed = copy.deepcopy(stored)
    for pointer, value, place in values:
        _at(changed, pointer[:-1])[pointer[-1]] = vault.seal(value, place=place)
    return changed


def _moved(key: Any, shift: Shift | None, *, back: bool = False) -> Any:
    if shift is None:
        return key
    return int(key) - shift.offset if back else int(key) + shift.offset
