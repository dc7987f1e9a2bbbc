"""A pytest plugin that notes which lines each test executes. A mutant is later tried only with the tests that execute its line.

The file `ASKED` in the working directory lists the source files whose lines are noted. The plugin writes the notes to the file `NOTED`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ASKED = Path(".mutant-files.json")
NOTED = Path(".mutant-calls.json")
# The key in the notes for the code that runs while pytest collects the tests, for example to compute parameters.
COLLECTION = ""
_notes: dict[str, tuple[float, list[str], dict[str, list[int]]]] = {}
_files: dict[str, str] = {}
_called: set[str] = set()
_lines: defaultdict[str, set[int]] = defaultdict(set)


def _note(frame: FrameType, _event: str, _argument: object) -> Callable[[FrameType, str, object], Any] | None:
    if (file := _files.get(frame.f_code.co_filename)) is None:
        return None
    _called.add(f"{file}:{frame.f_code.co_qualname.replace('.<locals>', '')}")
    _lines[file].add(frame.f_lineno)
    return _note_line


def _note_line(frame: FrameType, event: str, _argument: object) -> Callable[[FrameType, str, object], Any]:
    if event == "line":
        _lines[_files[frame.f_code.co_filename]].add(frame.f_lineno)
    return _note_line


def pytest_configure() -> None:
    """Trace this thread and all later threads. Tests share the trace function, because a thread of a pool runs code of several tests."""
    _files.update({str(Path(name).resolve()): name for name in json.loads(ASKED.read_text())})
    # A trace function takes less time than a profile function, because Python calls it only for Python functions.
    threading.settrace(_note)
    sys.settrace(_note)


def _noted_since(begin: float) -> tuple[float, list[str], dict[str, list[int]]]:
    return time.monotonic() - begin, sorted(_called), {file: sorted(lines) for file, lines in _lines.items()}


def pytest_collection_finish() -> None:
    """Note the calls that the collection of the tests has made."""
    _notes[COLLECTION] = _noted_since(time.monotonic())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note the called functions, the executed lines and the time (in seconds) of one test."""
    _called.clear()
    _lines.clear()
    # Set the trace function again: an earlier test may have replaced it, as Hypothesis does while it runs examples.
    sys.settrace(_note)
    begin = time.monotonic()
    try:
        return (yield)
    finally:
        _notes[item.nodeid] = _noted_since(begin)


def pytest_sessionfinish() -> None:
    """End the trace and write the notes."""
    sys.settrace(None)
    threading.settrace(None)
    NOTED.write_text(json.dumps(_notes))
