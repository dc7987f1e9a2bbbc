"""The loader of times for the event loop reads the same values, and refuses the same values, as the plain loader of Django."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db.backends.postgresql.psycopg_any import BaseTzLoader
from psycopg import DataError

from foundation.database.loop_queries import UtcLoader

OID = 1184


class Plain(BaseTzLoader):  # type: ignore[misc]
    timezone = UTC


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-23 10:23:33+00",
        "2026-11-23 10:23:33.5+00",
        "2026-11-23 10:23:33.000001+00",
        "2026-11-23 10:23:33.581688+00",
        "0001-01-01 00:00:00+00",
        "9999-12-31 23:59:59.999999+00",
        "2026-11-23 12:23:33.581688+02",
        "2026-11-23 05:53:33-04:30",
    ],
)
def test_the_loader_of_the_event_loop_reads_the_same_time_as_the_plain_loader(text: str) -> None:
    fast, plain = (loader(OID).load(text.encode()) for loader in (UtcLoader, Plain))
    assert (fast, fast.tzinfo, fast.isoformat()) == (plain, plain.tzinfo, plain.isoformat())
    assert isinstance(fast, datetime)


@pytest.mark.parametrize("text", ["infinity", "-infinity", "10000-01-01 00:00:00+00", "0044-03-15 12:00:00+00 BC"])
def test_both_loaders_refuse_a_time_that_python_cannot_represent(text: str) -> None:
    for loader in (UtcLoader, Plain):
        with pytest.raises(DataError):
            loader(OID).load(text.encode())
