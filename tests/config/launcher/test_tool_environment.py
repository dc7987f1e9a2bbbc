"""Environments of tools are installed once per lock file. A failed installation does not count as complete."""

from __future__ import annotations

import hashlib
from pathlib import Path

from config.launcher.tool_environment import install


def test_a_complete_environment_is_kept_and_a_failed_installation_is_not_marked_as_complete(tmp_path: Path) -> None:
    lock, environment = tmp_path / "tools.lock", tmp_path / "environment"
    lock.write_text("# no packages\n")
    environment.mkdir()
    (environment / "installed").write_text(hashlib.sha256(lock.read_bytes()).hexdigest())

    assert install(lock, environment)
    assert not (environment / "bin").exists()

    lock.write_text("not a requirement at all ==\n")
    assert not install(lock, environment)
    assert (environment / "bin" / "python").exists()
    assert not (environment / "installed").exists()
