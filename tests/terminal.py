"""A terminal with bash in it, driven as a person drives one: commands are typed, what is printed is read, Ctrl+C is pressed."""

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

# Without an editor and prompts, so that nothing but the programs' own output is printed.
_COMMAND = "stty -echo; exec bash --norc --noprofile --noediting -i"
_MARK = "end of the commands"
# Colours and movements of the cursor, which a terminal shows and does not print.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """One terminal in a directory. It ends with everything that runs in it when the `with` block does."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._scripts = directory
        self._count = 0
        self._printed = b""
        ours, theirs = os.openpty()
        self._descriptor = ours
        name = os.ttyname(theirs)
        # A leader of a session that opens a terminal gets it as its own; only then does Ctrl+C mean anything.
        self._shell = subprocess.Popen(
            ["sh", "-c", f"exec <{name} >{name} 2>&1; {_COMMAND}"],
            cwd=directory,
            env={**environment, "PS1": "", "PS2": "", "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            # A shell passes on what is ignored where the tests were started, such as Ctrl+C behind an `&`.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.run("true")
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End everything that was started here, in the foreground and behind; nothing of it has to agree."""
        for pid in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._shell.wait()
        os.close(self._descriptor)
        self._reader.join(10)

    @property
    def printed(self) -> str:
        """Everything that was printed so far."""
        return _CONTROL.sub("", self._printed.decode(errors="replace").replace("\r\n", "\n"))

    def run(self, commands: str, *, seconds: float = 60) -> tuple[int, str]:
        """Run commands to their end; return the status of the last one, and what was printed."""
        before = len(self.printed)
        # Each end has a number of its own: what is printed meanwhile, such as the line after Ctrl+C, moves no other into its place.
        mark = f"{_MARK} {self._count + 1}"
        self.begin(commands, and_then=f"printf '\\n{mark}: %s\\n' $?")
        end = re.compile(rf"\n{mark}: (\d+)\n")
        eventually(lambda: end.search(self.printed), seconds=seconds)
        found = end.search(self.printed)
        assert found is not None
        return int(found.group(1)), self.printed[before : found.start()]

    def begin(self, commands: str, *, and_then: str = "") -> None:
        """Begin commands that do not end by themselves."""
        self._count += 1
        # A terminal takes so many characters at once and no more; a file has no such limit.
        script = self._scripts / f".{id(self)}-{self._count}.sh"
        script.write_text(f"{commands}\n")
        self._type(f". ./{script.name}; {and_then}".rstrip("; ") + "\n")

    def interrupt(self) -> None:
        """Press Ctrl+C, and wait until the shell takes commands again."""
        self._type("\x03")
        self.run("true")

    def _processes(self) -> list[int]:
        """Return the processes of the session: the shell, and what it has started."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                # After the name, which may hold anything: state, parent, group, session.
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
