"""The lock files name each package with its hashes and without a URL. The notices contain the license of each direct dependency."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
SOURCES = sorted((ROOT / "requirements").glob("*.in"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_file_pins_packages_by_hash_and_names_no_host(lock: Path) -> None:
    text = lock.read_text()
    packages = [block for block in re.split(r"\n(?=\S)", text) if block.strip()]

    assert packages
    assert all(re.match(r"^[a-z0-9.\-]+(\[[a-z,]+\])?==\S+", block) and "--hash=sha256:" in block for block in packages)
    assert not re.search(r"https?://|index|find-links|file:", text)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_each_direct_dependency_has_its_license_in_the_notices(source: Path) -> None:
    notices = (ROOT / "docs" / "third-party-notices.md").read_text().lower()
    listed = {name.strip() for row in re.findall(r"^\| ([^|]+) \|", notices, re.MULTILINE) for name in row.split(",")}

    assert set(_names(source)) <= listed


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_each_direct_dependency_is_listed_once_and_locked(source: Path) -> None:
    names = _names(source)
    locked = set(re.findall(r"^([a-z0-9.\-]+)(?:\[[a-z,]+\])?==", source.with_suffix(".lock").read_text(), re.MULTILINE))

    assert len(names) == len(set(names))
    assert set(names) <= locked


def _names(source: Path) -> list[str]:
    return re.findall(r"^([a-z0-9][a-z0-9.\-]*)", source.read_text(), re.MULTILINE)
