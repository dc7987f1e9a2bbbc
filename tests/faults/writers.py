"""The running writers of one tenant, and the records of their transactions."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faults.invariants import Operation

if TYPE_CHECKING:
    from tests.faults.world import Seeded

_END_SECONDS = 150.0


@dataclass
class Writers:
    """Running writers of one tenant."""

    tenant: Seeded
    directory: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def stop(self) -> None:
        """Let every writer finish its transaction, and wait for the end of all writers. Fail if a writer has ended with an error."""
        (self.directory / "stop").touch()
        self.wait()

    def wait(self) -> None:
        for process in self.processes:
            status = process.wait(_END_SECONDS)
            assert status in {0, -signal.SIGKILL}, self.errors

    @property
    def errors(self) -> str:
        return (self.directory / "errors").read_text()[-8000:]

    def kill_one(self) -> None:
        self.processes[0].kill()

    @property
    def count(self) -> int:
        """The number of finished transactions."""
        return sum(operation.outcome != "unknown" or operation.ended < float("inf") for operation in self.operations())

    def have_begun(self) -> bool:
        """Report whether each writer has begun its first transaction or has ended. Tests wait for this before they cause a fault."""
        begun = sum(path.stat().st_size > 0 for path in self.directory.glob("*.log"))
        return begun + sum(process.poll() is not None for process in self.processes) >= len(self.processes)

    def have_made(self, number: int) -> bool:
        """Report whether more than `number` transactions have finished. Fail if a writer has ended with an error."""
        for process in self.processes:
            assert process.poll() in {None, 0, -signal.SIGKILL}, self.errors
        return self.count > number

    def operations(self) -> list[Operation]:
        """Return the records of the writers. The outcome of an unfinished transaction is unknown."""
        found: dict[str, dict[str, Any]] = {}
        for path in self.directory.glob("*.log"):
            for line in path.read_text().splitlines():
                with suppress(json.JSONDecodeError):
                    noted = json.loads(line)
                    found.setdefault(noted["id"], {}).update(noted)
        return [
            Operation(
                id=name,
                keys=tuple(line.get("keys", ())),
                entities=tuple(line.get("entities", ())),
                started=line["started"],
                ended=line.get("ended", float("inf")),
                outcome=line.get("outcome", "unknown"),
            )
            for name, line in found.items()
        ]
