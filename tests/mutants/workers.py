"""Processes that judge mutants at the same time. Each worker has its own copy of the source, servers and database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

from tests.mutants.children import Judgement
from tests.mutants.mutant import Mutant
from tests.mutants.running import copied_tree, runner, servers, warm_up

# A piece of work: a mutant to judge, or the names of tests to run without a mutant.
Work = TypeVar("Work", Mutant, tuple[str, ...])
Judge = Callable[[Any], Judgement]


class Workers:
    """Worker processes. Each worker gets its next piece of work as soon as it is idle."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes

    def judgements(self, pieces: Iterable[Work]) -> Iterator[tuple[Work, Judgement]]:
        """Yield each piece with its result, in the order in which the workers finish. Raises `EOFError` if a worker has died."""
        left = iter(pieces)
        busy: dict[Connection, Work] = {}

        def give(pipe: Connection) -> None:
            for piece in islice(left, 1):
                pipe.send(piece)
                busy[pipe] = piece

        for pipe in self._pipes:
            give(pipe)
        while busy:
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                done, judgement = busy.pop(ready), ready.recv()
                give(ready)
                yield done, judgement


@contextmanager
def judging(root: Path) -> Iterator[Judge]:
    """Copy the checkout at `root` and start servers. Yield a function that judges a mutant, or runs tests without a mutant."""
    with copied_tree(root) as copy, servers():
        warm_up()
        with runner(copy) as using:
            yield lambda piece: using.judge(piece) if isinstance(piece, Mutant) else using.run(piece)


@contextmanager
def workers(root: Path, count: int, begin: Callable[[Path], AbstractContextManager[Judge]] = judging) -> Iterator[Workers]:
    """Start `count` workers and yield them. Each worker calls `begin` with `root` to get its function. End the workers afterwards."""
    processes = get_context("spawn")
    pairs = [processes.Pipe() for _ in range(count)]
    started = [processes.Process(target=_work, args=(begin, root, theirs)) for _, theirs in pairs]
    for process, (_, theirs) in zip(started, pairs, strict=True):
        process.start()
        theirs.close()
    try:
        yield Workers([ours for ours, _ in pairs])
    finally:
        for ours, _ in pairs:
            ours.close()
        for process in started:
            process.join()


def _work(begin: Callable[[Path], AbstractContextManager[Judge]], root: Path, pipe: Connection) -> None:
    """Judge each piece of work from the pipe and send the result, until the other end of the pipe is closed."""
    with begin(root) as judge:
        while True:
            try:
                piece = pipe.recv()
            except EOFError:
                return
            pipe.send(judge(piece))
