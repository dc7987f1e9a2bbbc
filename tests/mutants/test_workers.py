"""Several workers judge the mutants of a run, and the run ends with an error if a worker dies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mutants.children import Judgement, Verdict
from tests.mutants.workers import Judge, workers


@contextmanager
def toy(root: Path) -> Iterator[Judge]:
    """Yield a function that judges a piece of work.

    The piece `meet` waits until another worker also judges a piece `meet`. The piece `die` ends the worker process.
    """

    def judge(piece: tuple[str, ...]) -> Judgement:
        if piece[0] == "die":
            os._exit(1)
        if piece[0] == "meet":
            (root / str(os.getpid())).touch()
            deadline = time.monotonic() + 20
            while len(list(root.iterdir())) < 2 and time.monotonic() < deadline:
                os.sched_yield()
        return Judgement(Verdict.MISSED, str(os.getpid()), 0.0, "")

    yield judge


def test_two_workers_judge_at_the_same_time_and_each_piece_is_judged_once(tmp_path: Path) -> None:
    pieces = [("meet", "1"), ("meet", "2"), *[("pass", str(number)) for number in range(20)]]

    with workers(tmp_path, 2, toy) as using:
        done = list(using.judgements(pieces))
        again = list(using.judgements([("pass",)]))

    assert sorted(piece for piece, _ in done) == sorted(pieces)
    meeting = {judgement.detail for piece, judgement in done if piece[0] == "meet"}
    assert (len(meeting), len(again)) == (2, 1)


def test_a_worker_that_dies_ends_the_run_with_an_error(tmp_path: Path) -> None:
    with workers(tmp_path, 1, toy) as using, pytest.raises(EOFError):
        list(using.judgements([("die",), ("pass",)]))
