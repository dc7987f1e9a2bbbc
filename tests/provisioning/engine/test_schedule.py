from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioning.engine.schedule import LONGEST_RETRY_AFTER_SECONDS, attempts_in_series, delay_before_next

DELAYS = (1.0, 5.0, 30.0)


def test_each_failure_except_the_last_is_followed_by_its_own_delay() -> None:
    found = [delay_before_next(failed, DELAYS, jitter=0.2, chance=0) for failed in range(1, 5)]

    assert found == [1.0, 5.0, 30.0, None]
    assert attempts_in_series(DELAYS) == 4


def test_the_first_failure_is_the_last_if_there_are_no_delays() -> None:
    assert delay_before_next(1, (), jitter=0, chance=0) is None


@pytest.mark.parametrize(("asked", "waited"), [(0.2, 5.0), (60.0, 60.0), (1e9, LONGEST_RETRY_AFTER_SECONDS)])
def test_retry_after_extends_the_delay_up_to_an_hour(asked: float, waited: float) -> None:
    assert delay_before_next(2, DELAYS, jitter=0, chance=1, retry_after=asked) == waited


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 3))
def test_jitter_extends_a_delay_by_at_most_the_configured_share(jitter: float, chance: float, failed: int) -> None:
    delay = delay_before_next(failed, DELAYS, jitter=jitter, chance=chance)

    assert delay is not None
    assert DELAYS[failed - 1] <= delay <= DELAYS[failed - 1] * (1 + jitter)
