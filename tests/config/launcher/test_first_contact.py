"""Errors of the first command, such as `make up`: a missing or unsupported Python, and a misspelled variable of make."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.launcher import options

ROOT = Path(__file__).resolve().parents[3]


def test_a_missing_python_is_reported_in_one_sentence() -> None:
    done = subprocess.run(
        ["make", "embedded", "PYTHON=/nowhere/python3.11"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode != 0
    assert "Python 3.11 is needed, and /nowhere/python3.11 was not found: install it, or name it with PYTHON=" in done.stderr


def test_an_unsupported_version_of_python_is_reported_in_one_sentence(tmp_path: Path) -> None:
    old = tmp_path / "python"
    as_old = "import runpy, sys; sys.version_info = (3, 9, 2); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    # The Makefile first asks with -c whether the program is Python 3.
    old.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\nexec {sys.executable} -c "{as_old}" "$@"\n')
    old.chmod(0o755)
    done = subprocess.run(["make", "embedded", f"PYTHON={old}"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "Python 3.11 is needed, this is" in done.stderr


@pytest.mark.parametrize("ends", ["echo 'no version is selected' >&2; exit 127", "echo 'SyntaxError: invalid syntax' >&2; exit 1"])
def test_a_program_that_does_not_start_python_3_is_reported_in_one_sentence(tmp_path: Path, ends: str) -> None:
    other = tmp_path / "python3.9"
    other.write_text(f"#!/bin/sh\n{ends}\n")
    other.chmod(0o755)
    done = subprocess.run(["make", "embedded", f"PYTHON={other}"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert f"Python 3.11 is needed, and {other} does not start Python 3: install it" in done.stderr
    assert "SyntaxError" not in done.stderr


@pytest.mark.parametrize(
    ("makeflags", "named"),
    [
        (" -- PROT=8123", "There is no variable PROT. Did you mean PORT?"),
        (" -- port=8123", "There is no variable port. Did you mean PORT?"),
        ("s -- PORT=8123 WEB_PROCESES=2", "There is no variable WEB_PROCESES. Did you mean WEB_PROCESSES?"),
        (" -- DATABSE_URL=postgresql:///x", "There is no variable DATABSE_URL. Did you mean DATABASE_URL?"),
        (" -- DELIVERY_RETRY_DELAY=1", "There is no variable DELIVERY_RETRY_DELAY. Did you mean DELIVERY_RETRY_DELAYS?"),
    ],
)
def test_a_misspelled_variable_is_refused_with_the_right_name(monkeypatch: pytest.MonkeyPatch, makeflags: str, named: str) -> None:
    monkeypatch.setenv("MAKEFLAGS", makeflags)
    with pytest.raises(ImproperlyConfigured) as refusal:
        options.read()
    assert str(refusal.value) == named


@pytest.mark.parametrize("makeflags", ["", "w", "-j2", " -- PORT=8123 TLS=1", " -- HTTPS_PROXY=http://127.0.0.1:1 DATA_DIR=/tmp/x"])
def test_known_variables_and_variables_of_other_programs_are_accepted(monkeypatch: pytest.MonkeyPatch, makeflags: str) -> None:
    monkeypatch.setenv("MAKEFLAGS", makeflags)
    monkeypatch.delenv("PORT", raising=False)
    assert options.read().port == 8000
