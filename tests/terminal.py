"""A terminal with bash. It types commands, reads the output, and presses Ctrl+C, like a user."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from tests.deadlines import eventually

# Run bash without an editor, and without an echo of the input, so that only the output of the programs is printed.
_COMMAND = "stty -echo; exec bash --norc --noprofile --noediting -i"
_MARK = "end of the commands"
# Escape sequences for colors and cursor movements, which are removed from the output.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal in a directory. The terminal and all its processes end at the end of the `with` block."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._scripts = directory
        self._count = 0
        self._printed = b""
        ours, theirs = os.openpty()
        self._descriptor = ours
        name = os.ttyname(theirs)
        # The shell is the leader of a new session, so the terminal that it opens becomes its controlling terminal. Ctrl+C requires such a
        # terminal.
        self._shell = subprocess.Popen(
            ["sh", "-c", f"exec <{name} >{name} 2>&1; {_COMMAND}"],
            cwd=directory,
            env={**environment, "PS1": "", "PS2": "", "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            # A shell inherits the signals that its parent ignores, and tests that were started with `&` ignore SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.run("true")
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Kill all started processes, in the foreground and in the background."""
        for pid in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._shell.wait()
        os.close(self._descriptor)
        self._reader.join(10)

    @property
    def printed(self) -> str:
        """The complete output since the start of the terminal, without escape sequences."""
        return _CONTROL.sub("", self._printed.decode(errors="replace").replace("\r\n", "\n"))

    def run(self, commands: str, *, seconds: float = 60) -> tuple[int, str]:
        """Run commands until they end. Return the exit status of the last command, and the output of the commands."""
        before = len(self.printed)
        # Print a marker after the commands. Its number is unique, so that the marker of earlier commands is not mistaken for it.
        mark = f"{_MARK} {self._count + 1}"
        self.begin(commands, and_then=f"printf '\\n{mark}: %s\\n' $?")
        end = re.compile(rf"\n{mark}: (\d+)\n")
        eventually(lambda: end.search(self.printed), seconds=seconds)
        found = end.search(self.printed)
        assert found is not None
        return int(found.group(1)), self.printed[before : found.start()]

    def begin(self, commands: str, *, and_then: str = "") -> None:
        """Start commands without waiting for their end. The command `and_then`, if any, runs after them."""
        self._count += 1
        # Write the commands to a file, because a terminal accepts only a limited number of characters per line.
        script = self._scripts / f".{id(self)}-{self._count}.sh"
        script.write_text(f"{commands}\n")
        self._type(f". ./{script.name}; {and_then}".rstrip("; ") + "\n")

    def interrupt(self) -> None:
        """Press Ctrl+C, and wait until the shell accepts commands again."""
        self._type("\x03")
        self.run("true")

    def _processes(self) -> list[int]:
        """Return the ids of all processes of the session: the shell and the processes that it has started."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                # The fields after the name are: state, parent, group, session. The name may contain any character, such as a bracket.
                if int(path.read_text().rpartition(")")[2].split()[3]) == self._shell.pid:
                    found.append(int(path.parent.name))
        return found

    def _type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def _read(self) -> None:
        while True:
            try:
                received = os.read(self._descriptor, 65536)
            except OSError:
                return
            if not received:
                return
            self._printed += received
