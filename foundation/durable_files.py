"""Writes files to the disk, so that they survive a power failure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def file_to_disk(file: BinaryIO) -> None:
    """Flush the file: after this call, all its content is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def directory_to_disk(directory: Path) -> None:
    """Write the entries of a directory to the disk, so that a new or renamed file has its name after a power failure."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
