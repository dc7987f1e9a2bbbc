"""The time for which a client waits before it connects again. Tests pass random numbers and times as arguments."""

from __future__ import annotations

from events.client.backoff import Backoff


def test_consecutive_failures_double_the_pause_up_to_its_limit() -> None:
    backoff = Backoff(lambda: 1.0, base_seconds=0.5, longest_seconds=30.0, retry_seconds=0.0)
    assert [backoff.after_failure() for _ in range(9)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_the_random_pause_can_be_zero() -> None:
    assert Backoff(lambda: 0.0, retry_seconds=0.0).after_failure() == 0.0


def test_after_progress_the_pause_is_the_retry_value_of_the_server() -> None:
    backoff = Backoff(lambda: 0.0)
    for _ in range(5):
        backoff.after_failure()
    backoff.wish(2000)
    assert backoff.after_progress() == 2.0
    assert backoff.failures == 0


def test_a_server_cannot_make_a_client_wait_forever() -> None:
    backoff = Backoff(lambda: 0.0)
    backoff.wish(10**12)
    assert backoff.after_progress() == 30.0


def test_the_pause_is_at_least_the_longer_of_retry_after_and_retry() -> None:
    backoff = Backoff(lambda: 0.0, retry_seconds=3.0)
    assert backoff.after_failure(retry_after=7.0) == 7.0
    assert backoff.after_failure(retry_after=1.0) == 3.0
