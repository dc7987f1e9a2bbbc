"""Starts child processes in their own sessions, bound to the life of their parent. A server that refuses root does not run as root."""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from config.launcher import namespace

_PR_SET_PDEATHSIG = 1
# The library is loaded before any fork: between fork and exec, imports and allocations are unsafe.
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Identity:
    """The account of a server: the present account, an ordinary user inside a user namespace, or another account of the machine."""

    namespace: bool = False
    account: str | None = None


OURSELVES = Identity()


@cache
def server_identity() -> Identity:
    """Return an identity that PostgreSQL accepts, because PostgreSQL refuses to run as root.

    For root, a user namespace is preferred, because it creates no account and changes no file mode; where namespaces are blocked,
    as in many containers, the account `postgres` or `nobody` is used.
    """
    if os.geteuid() != 0:
        return OURSELVES
    if _namespaces_allowed():
        return Identity(namespace=True)
    return Identity(account=_unprivileged_account())


def start(
    command: Sequence[str],
    *,
    identity: Identity = OURSELVES,
    death_signal: int = signal.SIGTERM,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    output: IO[bytes] | int | None = None,
) -> subprocess.Popen[bytes]:
    """Start `command` so that it receives `death_signal` when the calling thread's process ends for any reason.

    Call it from the main thread only: the kernel binds the signal to the thread that forks. The child gets its own session, so
    Ctrl+C in the terminal reaches only the launcher, which then stops everything in order.
    """
    parent = os.getpid()
    account = pwd.getpwnam(identity.account) if identity.account else None

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(
        _in_namespace(command, parent, death_signal) if identity.namespace else list(command),
        env=dict(environment) if environment is not None else None,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output is not None else None,
        start_new_session=True,
        preexec_fn=None if identity.namespace else prepare,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
    )


def run(command: Sequence[str], *, identity: Identity = OURSELVES, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run `command` to its end under `identity`; return its exit status and its output."""
    child = start(command, identity=identity, environment=environment, output=subprocess.PIPE)
    printed, _ = child.communicate()
    return child.returncode, printed.decode(errors="replace")


def _in_namespace(command: Sequence[str], parent: int, death_signal: int) -> list[str]:
    """Return the command that enters a user namespace and then executes `command`."""
    # -I and -S: the interpreter must not read variables or packages of the caller, which can differ from those of this process.
    return [sys.executable, "-I", "-S", namespace.__file__, str(parent), str(int(death_signal)), *command]


def _namespaces_allowed() -> bool:
    try:
        status, _ = run(["true"], identity=Identity(namespace=True))
    except (OSError, subprocess.SubprocessError):
        return False
    return status == 0


def _unprivileged_account() -> str | None:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None
