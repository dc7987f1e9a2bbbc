"""Returns memory to the system after much of it was freed.

The C library keeps free blocks between used blocks, so a process that once contained many large bodies would stay large.
"""

from __future__ import annotations

import asyncio
import ctypes
from functools import lru_cache
from typing import Any

# A trim reads all free blocks, so it runs only after this many bytes were freed, and at most once per `_PAUSE_SECONDS`.
_WORTH_BYTES = 4 * 1024 * 1024
_PAUSE_SECONDS = 1.0


class _Freed:
    size = 0
    is_due = False


def note_freed(size: int) -> None:
    """Count the bytes of a freed block; after `_WORTH_BYTES`, schedule a trim of the heap outside the event loop."""
    _Freed.size += size
    if _Freed.size >= _WORTH_BYTES and not _Freed.is_due:
        _Freed.is_due = True
        asyncio.get_running_loop().call_later(_PAUSE_SECONDS, _trim)


def _trim() -> None:
    _Freed.size, _Freed.is_due = 0, False
    library = _library()
    if library is not None:
        # The call releases the interpreter lock, so other threads continue.
        asyncio.get_running_loop().run_in_executor(None, library.malloc_trim, 0)


@lru_cache(maxsize=1)
def _library() -> Any:
    """Return the C library, or None if the library has no `malloc_trim` (musl)."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") else None
