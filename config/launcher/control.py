"""The socket between `make down`, `make scim-stop`, `make scim-start` and a running supervisor."""

from __future__ import annotations

import fcntl
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from config.launcher.directories import make_private, socket_directory

Answer = dict[str, Any]
_PATIENCE_SECONDS = 60.0


class NothingRuns(Exception):
    """No `make up` of this checkout is running."""


class Listener:
    """The supervisor's end of the socket. Answers one short JSON request per connection."""

    def __init__(self, data_dir: Path, answer: Callable[[str], Answer]) -> None:
        path = _path(data_dir)
        path.unlink(missing_ok=True)
        self._answer = answer
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        path.chmod(0o600)
        self.socket.listen(8)

    def serve_one(self) -> None:
        """Answer one waiting connection; a caller that sends nothing is dropped after a second."""
        connection, _ = self.socket.accept()
        with connection:
            connection.settimeout(1.0)
            try:
                request = json.loads(connection.recv(4096))
                connection.sendall(json.dumps(self._answer(str(request.get("do")))).encode())
            except (OSError, ValueError, AttributeError):
                # An invalid request must not stop the services.
                return

    def close(self) -> None:
        self.socket.close()


def ask(data_dir: Path, what: str) -> Answer:
    """Send the command `what` to the running supervisor. Raises `NothingRuns`."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE_SECONDS)
        try:
            connection.connect(str(_path(data_dir)))
            connection.sendall(json.dumps({"do": what}).encode())
            answer: Answer = json.loads(connection.recv(65536) or b"{}")
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise NothingRuns from error
    return answer


def take_lock(data_dir: Path) -> IO[str] | None:
    """Take the lock that a `make up` holds until it ends; None if another `make up` holds the lock."""
    make_private(data_dir)
    file = (data_dir / "lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _path(data_dir: Path) -> Path:
    return socket_directory(data_dir, "control") / "control.sock"
