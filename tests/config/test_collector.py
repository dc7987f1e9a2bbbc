"""The garbage collector ignores objects that were created during the start of a process, and collects later objects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_OF_A_COMMAND = """
import contextlib, sys
import manage
sys.argv = ["manage.py", "events", "--help"]
with contextlib.suppress(SystemExit):
    manage.main()
"""
_LOOK = "import gc; print(gc.isenabled(), gc.get_freeze_count() > 100_000, len(gc.get_objects()) < 20_000)"


@pytest.mark.parametrize("start", ["import config.asgi", _OF_A_COMMAND], ids=["web", "command"])
def test_objects_created_during_the_start_are_excluded_from_every_collection(start: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"{start}\n{_LOOK}"], cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["True True True"], done.stdout + done.stderr
