"""Counts of many names in constant memory.

A sketch is a table of counters for one time window, in which several names can share a counter.
"""

from __future__ import annotations

import sys
from threading import Thread

from foundation.memory.sketch import WIDTH, Sketch


def test_only_the_counted_name_has_a_count() -> None:
    sketch = Sketch(60, clock=lambda: 120.0)
    assert [sketch.add("a") for _ in range(3)] == [1, 2, 3]
    assert (sketch.read("a"), sketch.read("b")) == (3, 0)


def test_counts_are_zero_again_in_the_next_time_window() -> None:
    now = [119.0]
    sketch = Sketch(60, clock=lambda: now[0])
    sketch.add("a", 5)
    assert not sketch.is_empty
    now[0] = 120.0
    assert sketch.is_empty
    assert sketch.read("a") == 0
    assert sketch.add("a") == 1


def test_a_count_of_another_process_replaces_only_a_lower_count() -> None:
    sketch = Sketch(60, clock=lambda: 0.0)
    sketch.add("a", 4)
    assert sketch.raise_to("a", 9) == 9
    assert sketch.raise_to("a", 2) == 9
    assert sketch.add("a") == 10


def test_memory_is_constant_for_any_number_of_names() -> None:
    sketch = Sketch(60, clock=lambda: 0.0)
    sketch.add("first")
    before = sys.getsizeof(sketch._cells)
    for number in range(20_000):
        sketch.add(f"name {number}")
    assert sys.getsizeof(sketch._cells) == before
    assert len(sketch._cells) == 2 * WIDTH


def test_an_estimate_is_never_too_low_and_rarely_too_high() -> None:
    sketch = Sketch(60, clock=lambda: 0.0)
    for number in range(20_000):
        sketch.add(f"name {number}", 3)
    estimates = [sketch.read(f"name {number}") for number in range(20_000)]
    assert min(estimates) == 3
    # A name has one cell in each of two rows of 65,536 cells. With 20,000 names, about one name in fourteen shares both of its cells with
    # other names.
    assert sum(estimate > 3 for estimate in estimates) < 2000


def test_a_name_has_different_cells_in_two_processes() -> None:
    one, other = Sketch(60, clock=lambda: 0.0), Sketch(60, clock=lambda: 0.0)
    assert [one._places(str(number)) for number in range(8)] != [other._places(str(number)) for number in range(8)]


def test_no_count_is_lost_between_threads() -> None:
    sketch = Sketch(60, clock=lambda: 0.0)

    def count() -> None:
        for _ in range(5000):
            sketch.add("a")

    threads = [Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sketch.read("a") == 20_000


def test_a_count_stays_at_the_largest_number_that_a_cell_can_hold() -> None:
    sketch = Sketch(60, clock=lambda: 0.0)
    assert sketch.add("a", 2**32 - 2) == 2**32 - 2
    assert [sketch.add("a"), sketch.add("a"), sketch.raise_to("a", 2**40)] == [2**32 - 1] * 3


def test_a_sketch_is_empty_before_the_first_count_and_after_it_is_cleared() -> None:
    sketch = Sketch(60, clock=lambda: 30.0)
    assert sketch.is_empty
    sketch.add("a")
    assert not sketch.is_empty
    sketch.clear()
    assert sketch.is_empty
    assert sketch.read("a") == 0


def test_a_clock_that_is_set_back_begins_another_window() -> None:
    now = [120.0]
    sketch = Sketch(60, clock=lambda: now[0])
    sketch.add("a", 5)
    now[0] = 119.0
    assert sketch.is_empty
    assert sketch.read("a") == 0
    assert sketch.add("b") == 1
