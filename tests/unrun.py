"""A pytest plugin that ends every run with a list of the tests that did not run, and the reasons."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

# The folders of tests that a separate command runs, each with its command.
_ELSEWHERE = {"peers": "make test-peers", "faults": "make test-faults"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the skipped tests by reason, and the groups that were left out."""
    skipped = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
    lines = [f"{count} test{'s' if count > 1 else ''}: {reason}" for reason, count in sorted(skipped.items())]
    if "not deep" in (config.getoption("markexpr") or ""):
        lines.append("tests marked deep, and cases that are not in the sample of a test: run by make test-deep")
    if config.getoption("turn") is not None:
        lines.append("the other parts of each test's cases: make test TURN=today runs another part every day, make test-deep runs all")
    lines += [f"tests/{name}: run by {command}" for name, command in _ELSEWHERE.items() if _is_left_out(config, name)]
    if lines:
        terminalreporter.section("not run here")
        for line in lines:
            terminalreporter.write_line(line)


def _reason(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return f"known to fail: {report.wasxfail}"
    place = report.longrepr
    return place[2].removeprefix("Skipped: ") if isinstance(place, tuple) else str(place)


def _is_left_out(config: pytest.Config, name: str) -> bool:
    ignored = {Path(path).name for path in config.getoption("ignore") or []}
    # A folder is left out with `--ignore`, or by the mark of its tests.
    return name in ignored or f"not {name.removesuffix('s')}" in (config.getoption("markexpr") or "")
