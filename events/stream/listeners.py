"""Makes the kernel close the connections of clients that disappeared without closing the connection.

ASGI servers have no common way to get the socket of a request. But Linux copies the options of a listening socket to every
connection it accepts, and the listening sockets belong to this process. So this module sets the options on the listening sockets.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

_OPEN_FILES = Path("/proc/self/fd")
# A peer that acknowledges no data within this time is dead. The deadline of a write is shorter, so that the stream notices the dead peer
# first and reports the cause.
UNANSWERED_MS = 30_000
# The kernel checks an idle connection after 30 s: three times, at intervals of 10 s.
OPTIONS = {
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1,
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): 30,
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): 10,
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT): 3,
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT): UNANSWERED_MS,
}


def watch_over_readers() -> int:
    """Set the options on every listening TCP socket of this process; return the number of sockets."""
    count = 0
    for listener in _listeners():
        for (level, name), value in OPTIONS.items():
            listener.setsockopt(level, name, value)
        count += 1
    return count


def _listeners() -> Iterator[socket.socket]:
    for entry in _OPEN_FILES.iterdir():
        try:
            found = socket.socket(fileno=os.dup(int(entry.name)))
        except OSError:
            # The descriptor is not a socket, or was closed after the list was made.
            continue
        with found:
            is_tcp = found.family in (socket.AF_INET, socket.AF_INET6) and found.type == socket.SOCK_STREAM
            if is_tcp and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield found
