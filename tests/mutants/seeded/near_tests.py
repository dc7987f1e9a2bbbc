"""Chooses the tests for a mutant from the notes of a run without a mutant. Imports no module of the product."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tests.mutants.seeded import call_notes
from tests.mutants.seeded.operators import Change


@dataclass(frozen=True)
class Noted:
    """What one test does without a mutant: its time in seconds, the functions that it calls, and for each file the lines that it
    executes."""

    seconds: float
    functions: frozenset[str]
    lines: Mapping[str, frozenset[int]]


@dataclass(frozen=True)
class NearTests:
    """The notes of each test, and the functions that pytest calls while it collects the tests (`of_collection`).

    `in_process` is true if no test runs the source in another process. In that case, only a test that executes a line can notice a mutant
    of this line.
    """

    notes: Mapping[str, Noted]
    of_collection: frozenset[str]
    in_process: bool = False

    @classmethod
    def noted(cls, copy: Path, *, in_process: bool) -> NearTests:
        """Read the notes that the run without a mutant has written in `copy`."""
        read = {
            test: Noted(seconds, frozenset(functions), {file: frozenset(lines) for file, lines in by_file.items()})
            for test, (seconds, functions, by_file) in json.loads((copy / call_notes.NOTED).read_text()).items()
        }
        collection = read.pop(call_notes.COLLECTION).functions
        return cls(read, collection, in_process)

    @property
    def seconds(self) -> float:
        """How long all tests together take without a mutant, in seconds."""
        return sum(noted.seconds for noted in self.notes.values())

    def in_files(self, files: Iterable[str]) -> NearTests:
        """Return only the notes of the tests in these files."""
        chosen = frozenset(files)
        notes = {test: noted for test, noted in self.notes.items() if test.partition("::")[0] in chosen}
        return NearTests(notes, self.of_collection, self.in_process)

    def of(self, file: str, source: str, change: Change, *, most_seconds: float | None = None) -> tuple[str, ...]:
        """Return the names of the tests that can notice the change of `file`, fast tests first, until their times reach `most_seconds` in
        total.

        For a change outside of functions, or in a function that runs during the collection, return all tests: each of them may notice it.
        Otherwise return the tests that execute the changed statement. If no test executes it, there are two cases:

        - All tests run the source in their own process: no test is returned.
        - Some tests may run the source in another process: return the tests that call the changed function. If no test calls it, return
          all tests.
        """
        function = f"{file}:{change.function}"
        if not change.function or function in self.of_collection:
            return self._fastest(self.notes, most_seconds)
        calling = [test for test, noted in self.notes.items() if function in noted.functions]
        first, last = statement_at(source, change.line)
        executing = [test for test in calling if any(first <= line <= last for line in self.notes[test].lines.get(file, ()))]
        if self.in_process or executing:
            return self._fastest(executing, most_seconds)
        return self._fastest(calling or self.notes, most_seconds)

    def _fastest(self, tests: Iterable[str], most_seconds: float | None) -> tuple[str, ...]:
        """Sort the tests by time, but keep the tests of one file together, because they share fixtures."""
        files: dict[str, list[str]] = {}
        for test in tests:
            files.setdefault(test.partition("::")[0], []).append(test)
        ordered = [
            test
            for group in sorted(files.values(), key=self._mean_seconds)
            for test in sorted(group, key=lambda name: self.notes[name].seconds)
        ]
        return tuple(_up_to(most_seconds, ((test, self.notes[test].seconds) for test in ordered)))

    def _mean_seconds(self, tests: Sequence[str]) -> float:
        return sum(self.notes[test].seconds for test in tests) / len(tests)


def _up_to(most_seconds: float | None, timed: Iterable[tuple[str, float]]) -> Iterator[str]:
    spent = 0.0
    for test, seconds in timed:
        yield test
        spent += seconds
        if most_seconds is not None and spent >= most_seconds:
            return


@lru_cache(maxsize=4096)
def statement_at(source: str, line: int) -> tuple[int, int]:
    """Return the first and the last line of the innermost statement that contains `line`.

    A compound statement, such as `if`, is counted without its body: its last line is the last line before the body.
    """
    return min(_spans(source, line), key=lambda span: (span[1] - span[0], -span[0]), default=(line, line))


def _spans(source: str, line: int) -> list[tuple[int, int]]:
    return [span for span in _statements(source) if span[0] <= line <= span[1]]


@lru_cache(maxsize=16)
def _statements(source: str) -> tuple[tuple[int, int], ...]:
    return tuple((node.lineno, _last_line(node)) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt | ast.ExceptHandler))


def _last_line(node: ast.stmt | ast.ExceptHandler) -> int:
    match node:
        case ast.Match(cases=cases):
            return max(case.pattern.end_lineno or node.lineno for case in cases)
        case _ if body := getattr(node, "body", None):
            return max(node.lineno, int(body[0].lineno) - 1)
        case _:
            return node.end_lineno or node.lineno
