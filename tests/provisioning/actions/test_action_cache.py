from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioning.actions.event_stream.v1.cache import ActionCache, CacheLimitReached, ProcessCaches


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock) -> ActionCache:
    return ProcessCaches().of("action", clock)


def test_a_cached_text_is_kept_for_fifteen_minutes_by_default() -> None:
    clock = Clock()
    cache = opened(clock)
    cache.set("key", "value")
    clock.now += 899
    assert cache.get("key") == "value"
    clock.now += 2
    assert cache.get("key") is None


@pytest.mark.parametrize(
    ("ttl", "expires_at", "life"),
    [(60, None, 60), (1, None, 1), (None, 1030.0, 30), (60, 1030.0, 30), (10, 1030.0, 10), (10**9, None, 86_400), (None, 10.0**9, 86_400)],
)
def test_the_earlier_of_two_expiry_times_applies_and_a_day_is_the_maximum(ttl: float | None, expires_at: float | None, life: float) -> None:
    clock = Clock()
    cache = opened(clock)
    cache.set("key", "value", ttl=ttl, expires_at=expires_at)
    clock.now += life - 1
    assert cache.get("key") == "value"
    clock.now += 2
    assert cache.get("key") is None


@pytest.mark.parametrize("ttl", [0, -1])
def test_a_text_with_a_lifetime_of_zero_or_less_is_not_found(ttl: float) -> None:
    cache = opened(Clock())
    cache.set("key", "value", ttl=ttl)
    assert cache.get("key") is None


def test_a_key_can_be_deleted_and_actions_do_not_share_entries() -> None:
    caches, clock = ProcessCaches(), Clock()
    caches.of("a", clock).set("key", "value")
    assert caches.of("a", clock).get("key") == "value"
    assert caches.of("b", clock).get("key") is None
    caches.of("a", clock).delete("key")
    assert caches.of("a", clock).get("key") is None


def test_values_over_a_limit_are_refused_and_existing_entries_stay() -> None:
    cache = opened(Clock())
    for key, value in (("k" * 65, "v"), ("k", "v" * 4097)):
        with pytest.raises(CacheLimitReached):
            cache.set(key, value)
    for number in range(20):
        cache.set(f"key {number}", "v")
    with pytest.raises(CacheLimitReached):
        cache.set("one more", "v")
    cache.set("key 0", "v" * 4000)
    with pytest.raises(CacheLimitReached):
        cache.set("key 1", "v" * 4096)
    assert (cache.get("key 0"), cache.get("key 1")) == ("v" * 4000, "v")


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.text(max_size=3000)), max_size=40))
def test_the_total_size_of_the_entries_never_exceeds_eight_kilobytes(writes: list[tuple[str, str]]) -> None:
    cache = opened(Clock())
    kept: dict[str, str] = {}
    for key, value in writes:
        try:
            cache.set(key, value)
            kept[key] = value
        except CacheLimitReached:
            continue
    assert {key: cache.get(key) for key in kept} == kept
    assert sum(len(key.encode()) + len(value.encode()) for key, value in kept.items()) <= 8192
