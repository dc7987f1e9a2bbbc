"""The Markdown files refer only to tests, targets of the Makefile and management commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PROOFS = [ROOT / "docs" / name for name in ("guarantees.md", "reference/stream-tests.md", "reference/scim.md")]

_TEST_PATH = re.compile(r"`((?:[\w*]+/)*test_[\w*]+\.py|(?:\w+/)+|faults/\w+\.py)`")
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"(?:^|[`\s&;(])make ([a-z][a-z-]*)", re.MULTILINE)
_COMMAND = re.compile(r"manage\.py ([a-z_]+)")


@pytest.mark.parametrize("page", PROOFS, ids=lambda page: page.name)
def test_every_test_named_as_a_proof_exists(page: Path) -> None:
    named = set(_TEST_PATH.findall(page.read_text())) - {"tests/"}
    assert len(named) > 10
    # In a row of a table, a later path may omit the directory that an earlier path in the row names.
    assert [name for name in sorted(named) if not any(TESTS.glob(name)) and not any(TESTS.rglob(name))] == []


def test_every_named_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"up", "test", "docs"} <= targets
    assert _named(_TARGET) - targets == set()


def test_every_named_management_command_exists() -> None:
    assert _named(_COMMAND) - set(get_commands()) == set()


def _named(pattern: re.Pattern[str]) -> set[str]:
    return {name for page in PAGES for code in _CODE.findall(page.read_text()) for name in pattern.findall(code)}
