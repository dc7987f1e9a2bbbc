"""The processes of a server that a test freezes together."""

from __future__ import annotations

from pathlib import Path


def family(pid: int) -> list[int]:
    """Return a process and its children, or nothing if the process has ended.

    The parent is first: a caller freezes the parent first, so that the parent can start no more children.
    """
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [pid, *(int(child) for child in children.read_text().split())]
    except FileNotFoundError:
        return []
