"""The locks: every package with its hashes, no address of where it came from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LOCKS = sorted((Path(__file__).resolve().parents[2] / "requirements").glob("*.lock"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_pins_by_hash_and_names_no_host(lock: Path) -> None:
    text = lock.read_text()
    packages = [block for block in re.split(r"\n(?=\S)", text) if block.strip()]

    assert packages
    assert all(re.match(r"^[a-z0-9.\-]+(\[[a-z,]+\])?==\S+", block) and "--hash=sha256:" in block for block in packages)
    assert not re.search(r"https?://|index|find-links|file:", text)
