"""`make peers` installs packages once per lock file, and reports packages that it cannot install."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from config.launcher.peers import SERVERS, install_node_packages, install_python_packages, place_of

LOCKED = {"name": "nothing", "lockfileVersion": 3, "requires": True, "packages": {"": {"name": "nothing"}}}


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """Return a folder named `listed` with empty lists of packages."""
    folder = tmp_path / "listed"
    folder.mkdir()
    (folder / "package.json").write_text(json.dumps({"name": "nothing"}))
    (folder / "package-lock.json").write_text(json.dumps(LOCKED))
    (folder / "requirements.lock").write_text("# no packages\n")
    return folder


def test_installed_packages_are_not_installed_again(listed: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    node = (listed / "package.json").read_bytes() + (listed / "package-lock.json").read_bytes()
    (place / "installed").write_text(hashlib.sha256(node).hexdigest())
    assert install_node_packages(listed, place) == []
    (place / "installed").write_text(hashlib.sha256((listed / "requirements.lock").read_bytes()).hexdigest())
    assert install_python_packages(listed / "requirements.lock", place) == []
    assert [path.name for path in place.iterdir()] == ["installed"]


def test_missing_npm_is_reported_with_the_tests_that_do_not_run(listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert install_node_packages(listed, tmp_path / "place") == ["npm is missing: nothing of listed/package.json is tested"]


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is missing")
def test_node_packages_that_cannot_be_installed_are_reported_and_retried(listed: Path, tmp_path: Path) -> None:
    (listed / "package.json").write_text(json.dumps({"name": "nothing", "dependencies": {"not-in-the-lock": "1.0.0"}}))
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "installed").write_text("an older lock")
    told = "npm could not install the packages of listed/package-lock.json"
    assert install_node_packages(listed, tmp_path / "place") == [told]
    assert install_node_packages(listed, tmp_path / "place") == [told]


def test_python_packages_that_cannot_be_installed_are_reported(listed: Path, tmp_path: Path) -> None:
    (listed / "requirements.lock").write_text("not a requirement at all ==\n")
    assert install_python_packages(listed / "requirements.lock", tmp_path / "place") == [
        "pip could not install the packages of listed/requirements.lock"
    ]
    assert not (tmp_path / "place" / "installed").exists()


def test_every_peer_with_its_own_environment_has_pinned_packages() -> None:
    folders = [folder for folder in SERVERS.iterdir() if folder.is_dir() and folder.name != "__pycache__"]
    assert {place_of(folder.name).parent.name for folder in folders} == {"servers"}
    for folder in folders:
        python, node = folder / "requirements.lock", folder / "package-lock.json"
        assert "--hash=sha256:" in python.read_text() if python.exists() else '"integrity": "sha512-' in node.read_text()
