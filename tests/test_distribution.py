"""How `pytest -n` distributes tests: the units that one worker process runs, and the list of tests that start first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import distribution

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/identity/test_users.py::test_one", "tests/identity/test_users.py"),
        ("tests/identity/test_users.py::test_one[uvicorn]", "tests/identity/test_users.py"),
        ("tests/journeys/test_main_job.py::test_one", "tests/journeys"),
        ("tests/conformance/test_ending.py::test_one", "tests/conformance/test_ending.py"),
        ("tests/conformance/test_ending.py::test_one[uvicorn]", "tests/conformance[uvicorn]"),
        ("tests/conformance/test_refusing.py::test_one[uvicorn-from=]&x[0]=1]", "tests/conformance[uvicorn]"),
        ("tests/peers/accounts/test_main_job.py::test_one[canaille-plain]", "tests/peers/accounts[canaille]"),
    ],
)
def test_tests_that_share_a_slow_start_are_one_unit(nodeid: str, unit: str) -> None:
    assert distribution.unit_of(nodeid) == unit


def test_the_paths_of_the_tests_that_start_first_exist() -> None:
    named = {*distribution._FIRST, *distribution._TOGETHER, *distribution._PER_SERVER}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
