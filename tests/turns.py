"""A pytest plugin that divides the cases of a test into at most four parts. A run with `--turn` executes one part.

`make test` always executes the same part, so that the same source gives the same result. `make test TURN=today` executes another part
each day.

The plugin divides only tests that use the database and have more than four cases, because a case with a database takes a hundred times as
long as other cases. A run executes every second, third or fourth case of the list, depending on the number of cases. Four runs with
consecutive numbers of days execute each case at least once. `make test-deep` and every run without `--turn` execute all cases. A test
whose cases must stay together has the mark `whole`.
"""

from __future__ import annotations

import time
from collections import defaultdict

import pytest

from tests.depth import IS_DEEP

FEWEST = 4
DAYS = 4
_SECONDS_OF_A_DAY = 86_400


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--turn`. Its value is the number of the day whose cases run."""
    parser.addoption(
        "--turn", type=_turn, default=None, metavar="N|today", help="divide the cases of each test into parts, and run the part of day N"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases of divided tests, and remove the cases of other days. This runs before pytest selects cases by their marks."""
    turn: int | None = config.getoption("turn")
    waiting = set()
    for cases in _taking_turns(items):
        for place, case in enumerate(cases):
            case.add_marker(pytest.mark.sized)
            if turn is not None and not IS_DEEP and not is_run(place, len(cases), turn):
                waiting.add(case)
    if waiting:
        config.hook.pytest_deselected(items=list(waiting))
        items[:] = [item for item in items if item not in waiting]


def is_run(place: int, cases: int, turn: int) -> bool:
    """Return whether the run of day `turn` executes the case at this position. Runs of `DAYS` consecutive days execute all cases."""
    rounds = min(-(-cases // FEWEST), DAYS)
    return place % rounds == turn % rounds


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return a line with the option that runs the same cases again."""
    turn = config.getoption("turn")
    return None if turn is None else f"cases: --turn={turn}"


def _taking_turns(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and "django_db_setup" in getattr(item, "fixturenames", ()):
            tests[item.nodeid.partition("[")[0]].append(item)
    return [cases for cases in tests.values() if len(cases) > FEWEST and not _is_whole(cases[0])]


def _is_whole(case: pytest.Item) -> bool:
    # The tests in `tests/peers` have their own command, which always runs all cases.
    return case.nodeid.startswith("tests/peers/") or case.get_closest_marker("whole") is not None


def _turn(text: str) -> int:
    # The process that starts the workers computes the day and passes the number to the workers. So all workers run the part of the same
    # day, even if they start around midnight.
    return int(time.time() // _SECONDS_OF_A_DAY) if text == "today" else int(text)
