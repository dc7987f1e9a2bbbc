"""A program that executes a command as an ordinary user inside a user namespace: `namespace.py PARENT SIGNAL COMMAND [ARGUMENT...]`.

The command receives SIGNAL when PARENT, the process that started this program, ends.

This is a separate program because the kernel refuses a new user namespace to a process with several threads. A forked child has several
threads if a library starts one in a fork hook, as the exporter of traces does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1
_INNER_ID = 1000


def main(parent: int, death_signal: int, command: list[str]) -> None:
    """Replace this process by the command. Raises `OSError` if the kernel refuses the namespace or the command cannot be executed."""
    libc = ctypes.CDLL(None, use_errno=True)
    _enter_namespace(libc)
    # Set the parent-death signal only now: the kernel clears it when a process enters a namespace.
    libc.prctl(_PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:
        os._exit(1)
    # Python ignores these signals, and the command would inherit this. So restore the default.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    # The command comes from the caller of this program, not from a request.
    os.execvp(command[0], command)  # noqa: S606  # nosec B606


def _enter_namespace(libc: ctypes.CDLL) -> None:
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_INNER_ID} {uid} 1")
    _write("/proc/self/gid_map", f"{_INNER_ID} {gid} 1")


def _write(path: str, content: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, content.encode())
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
