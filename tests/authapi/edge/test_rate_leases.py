"""A process reserves ("leases") places in a rate window in advance, so that it sends fewer requests to Redis. All processes together
never allow more requests than the limit.
"""

from __future__ import annotations

import threading
from itertools import count

from authapi.edge.rate_leases import RateLeases

LIMIT = 200


class Redis:
    """Counts like INCRBY in Redis: `take` adds an amount and returns the new total."""

    def __init__(self) -> None:
        self.count, self.questions = 0, 0
        self._lock = threading.Lock()

    def take(self, amount: int) -> int:
        with self._lock:
            self.questions += 1
            self.count += amount
            return self.count


def hit(leases: RateLeases, redis: Redis, *, window: int = 1, limit: int = LIMIT) -> int:
    held = leases.held("one", window, limit)
    return held if held is not None else leases.taken("one", window, limit, redis.take)


def test_one_process_counts_without_a_gap_and_rarely_queries_redis() -> None:
    leases, redis = RateLeases(), Redis()
    assert [hit(leases, redis) for _ in range(LIMIT)] == list(range(1, LIMIT + 1))
    assert redis.questions < LIMIT / 2


def test_processes_together_stay_within_the_limit_and_waste_few_leased_requests() -> None:
    redis, processes = Redis(), [RateLeases() for _ in range(4)]
    places = [hit(processes[number % 4], redis) for number in range(2 * LIMIT)]
    allowed = [place for place in places if place <= LIMIT]
    assert len(allowed) == len(set(allowed))
    assert LIMIT * 0.9 <= len(allowed) <= LIMIT


def test_a_full_window_is_refused_without_a_query_to_redis() -> None:
    leases, redis = RateLeases(), Redis()
    for _ in range(LIMIT + 1):
        hit(leases, redis)
    questions = redis.questions
    assert {hit(leases, redis) for _ in range(100)} == {LIMIT + 1}
    assert redis.questions == questions


def test_a_small_limit_is_counted_one_request_at_a_time() -> None:
    leases, redis = RateLeases(), Redis()
    assert [hit(leases, redis, limit=5) for _ in range(7)] == [1, 2, 3, 4, 5, 6, 6]
    assert redis.questions == 6


def test_leased_requests_expire_with_their_window() -> None:
    leases, redis = RateLeases(), Redis()
    for _ in range(5):
        hit(leases, redis)
    before = redis.count
    assert hit(leases, redis, window=2) == before + 1


def test_two_threads_never_take_the_same_place_in_a_window() -> None:
    leases, redis, found = RateLeases(), Redis(), []
    start = threading.Barrier(8)

    def spend() -> None:
        start.wait(10)
        found.extend([hit(leases, redis, limit=10_000) for _ in range(500)])

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == len(set(found)) == 4000


def test_many_owners_use_bounded_memory() -> None:
    leases, numbers = RateLeases(), count(1)
    for owner in range(20_000):
        leases.taken(str(owner), 1, LIMIT, lambda _amount: next(numbers) % LIMIT + 1)
    assert len(leases._leases) <= 8192
