"""A pytest plugin that notes which functions each test calls. A mutant is then tried only with the tests that call its function.

The file `ASKED` in the working directory names the source files whose functions are noted. The plugin writes the result to `NOTED`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

ASKED = Path(".mutant-files.json")
NOTED = Path(".mutant-calls.json")
# The key of the functions that the collection calls, for example for the values of parameters.
COLLECTION = ""
_notes: dict[str, tuple[float, list[str]]] = {}
_files: dict[str, str] = {}
_called: set[str] = set()


def _note(frame: FrameType, event: str, _: object) -> None:
    if frame.f_code.co_filename in _files:
        _called.add(f"{_files[frame.f_code.co_filename]}:{frame.f_code.co_qualname.replace('.<locals>', '')}")


def pytest_configure() -> None:
    """Trace this thread and all later threads. Threads of a pool serve several tests, so all tests share one trace function."""
    _files.update({str(Path(name).resolve()): name for name in json.loads(ASKED.read_text())})
    # A trace costs less than a profile, because it is called only for Python functions.
    threading.settrace(_note)
    sys.settrace(_note)


def pytest_collection_finish() -> None:
    """Note the calls of the collection."""
    _notes[COLLECTION] = (0.0, sorted(_called))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note the calls of one test with its time in seconds."""
    _called.clear()
    begin = time.monotonic()
    try:
        return (yield)
    finally:
        _notes[item.nodeid] = (time.monotonic() - begin, sorted(_called))


def pytest_sessionfinish() -> None:
    """End the trace and write the notes."""
    sys.settrace(None)
    threading.settrace(None)
    NOTED.write_text(json.dumps(_notes))
