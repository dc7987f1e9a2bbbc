"""Keys, directories for sockets, and related files: created once and readable only by their owner."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config import env
from config.launcher import keys
from config.launcher.directories import NotPrivate, socket_directory, strangers, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_are_created_once_with_mode_0600(tmp_path: Path) -> None:
    made = keys.load_or_create(tmp_path)

    assert keys.load_or_create(tmp_path) == made
    assert mode(tmp_path / "keys") == 0o600
    assert len(set(made.values())) == len(keys.KEY_LISTS) + len(keys.DEMO_SECRETS)


def test_the_settings_accept_the_created_key_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in keys.load_or_create(tmp_path).items():
        monkeypatch.setenv(name, value)

    assert all(len(env.keys(name, "", "")) == 1 for name in keys.KEY_LISTS)


def test_a_missing_key_is_added_and_the_other_keys_stay_unchanged(tmp_path: Path) -> None:
    write_private(tmp_path / "keys", "CURSOR_KEYS=old:the-key-of-cursors-handed-out-before\n")

    made = keys.load_or_create(tmp_path)

    assert made["CURSOR_KEYS"] == "old:the-key-of-cursors-handed-out-before"
    assert keys.read_assignments(tmp_path / "keys") == made


def test_a_file_that_others_may_read_is_replaced_by_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "facts"
    path.write_text("old")
    path.chmod(0o644)

    write_private(path, "new")

    assert path.read_text() == "new"
    assert mode(path) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["facts"]


def test_sockets_are_elsewhere_if_the_path_of_the_data_directory_is_long(tmp_path: Path) -> None:
    near = socket_directory(tmp_path, "redis")
    far = socket_directory(tmp_path / ("deep" * 30), "redis")

    assert near.is_relative_to(tmp_path)
    assert len(str(far)) < 90
    assert far == socket_directory(tmp_path / ("deep" * 30), "redis")
    assert mode(near) == mode(far) == 0o700
    far.rmdir()


def test_a_symbolic_link_is_refused_as_directory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "redis").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(NotPrivate, match="belongs to another account"):
        socket_directory(tmp_path, "redis")


def test_reset_does_not_remove_a_directory_with_files_of_other_programs(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "thesis.txt").write_text("years of work")

    answer = subprocess.run(
        [sys.executable, "-m", "config.launcher", "reset"],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "DATA_DIR": str(tmp_path), "YES": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 1
    assert "thesis.txt" in answer.stderr
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_reset_accepts_every_file_that_the_launcher_creates(tmp_path: Path) -> None:
    for name in ("lock", "keys", ".keys.4711", "up.json", ".up.json.12", "up.env", "up.log", "demo.json", "environment"):
        (tmp_path / name).touch()
    for name in ("postgres", "redis", "run", "scim", "beat", "tls"):
        (tmp_path / name).mkdir()

    assert strangers(tmp_path) == []
