"""Ports for the servers of tests. Before a server listens on its port, no other test and no outgoing connection uses this port."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from pathlib import Path

# The first and the last port. They are below the ports that Linux uses for outgoing connections (32768 to 60999), and above usual service
# ports.
_FIRST, _LAST = 21_000, 32_767
# Test processes that run at the same time share this file.
_TURN = Path(tempfile.gettempdir()) / "identity-tests-next-port"


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 to which no socket is bound. The next calls, also in other processes, return other ports.

    The system could also choose a free port (`bind` to port 0). But before the server of the test listens, the system can give the
    same port to another process, and the test would then talk to a foreign server.
    """
    file = os.open(_TURN, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        port = int(os.read(file, 16) or _FIRST)
        while not _is_free(port):
            port = _after(port)
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, b"%05d" % _after(port))
        return port
    finally:
        os.close(file)


def _after(port: int) -> int:
    return port + 1 if port < _LAST else _FIRST


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
