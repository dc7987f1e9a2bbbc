"""The waiting time that a server requests with `Retry-After`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from foundation.outbound.retry_after import retry_after

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        (" 7 ", 7.0),
        ("0", 1.0),
        ("99999999", 86400.0),
        ("Fri, 01 May 2026 12:00:30 GMT", 30.0),
        ("Fri, 01 May 2026 12:00:30", 30.0),
        ("Fri, 01 May 2026 11:00:00 GMT", 1.0),
        ("soon", None),
        ("-1", None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date_within_limits(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-AFTER": value}, NOW) == seconds


def test_callers_may_set_the_limits_of_the_retry_time() -> None:
    assert retry_after({"Retry-After": "0"}, NOW, shortest=0.0, longest=600.0) == 0.0
    assert retry_after({"Retry-After": "99999999"}, NOW, shortest=0.0, longest=600.0) == 600.0
    assert retry_after({"Retry-After": "Fri, 01 May 2026 11:00:00 GMT"}, NOW, shortest=0.0, longest=600.0) == 0.0


def test_a_response_without_the_header_has_no_retry_time() -> None:
    assert retry_after({}, NOW) is None
