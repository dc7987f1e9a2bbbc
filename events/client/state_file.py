"""A file with the last offset of a stream, so that a killed reader resumes where it stopped."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from events.client.failures import StreamError


class UnusableState(StreamError):
    """The state file cannot be used."""


class StateFile:
    """Stores the last offset of one stream.

    The file is replaced atomically: if the process is killed, the file contains either the old or the new offset.
    """

    def __init__(self, path: Path, url: str) -> None:
        self._path = path
        self._url = url
        self._written: str | None = None

    def read(self) -> str | None:
        """Return the offset, or None when the file does not exist. Raises `UnusableState` for a file of another stream."""
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
            url, offset = document["url"], document["offset"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UnusableState(f"{self._path} is not a state file of a stream ({type(error).__name__}); name another file.") from error
        if url != self._url or not isinstance(offset, str):
            raise UnusableState(f"{self._path} belongs to {url}, not to {self._url}; name another file.")
        self._written = offset
        return offset

    def write(self, offset: str) -> None:
        """Store the offset durably. Raises `UnusableState`."""
        if offset == self._written:
            return
        document = {"url": self._url, "offset": offset, "written_at": datetime.now(UTC).isoformat(timespec="seconds")}
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(document, file)
                file.write("\n")
                file.flush()
                os.fsync(descriptor)
            draft.replace(self._path)
        except OSError as error:
            raise UnusableState(f"{self._path} cannot be written: {error.strerror}.") from error
        self._written = offset
