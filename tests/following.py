"""Follows a tutorial word by word, in a directory that looks like a checkout with a running `make up`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.deadlines import eventually
from tests.journeys.service import ROOT, Service
from tests.terminal import Terminal
from tests.tutorials import DIRECTORY, Step, pattern_of, steps_of

_PATIENCE_SECONDS = 60.0


def follow(
    page: str,
    service: Service,
    directory: Path,
    *,
    section: str | None = None,
    doings: Mapping[str, Callable[[], object]] | None = None,
    instead: Mapping[str, str] | None = None,
) -> int:
    """Follow a tutorial, or the section below one of its headings. Return the number of outputs that were as the page shows them.

    `instead` maps ports of the page to ports of the test.
    """
    steps = steps_of((DIRECTORY / f"{page}.md").read_text(), section=section)
    words = {"http://localhost:8000/": service.facts["auth_url"], **(instead or {})}
    with checkout_of(service, directory) as checkout:
        return Reader(service, checkout, doings=doings or {}, instead=words).follow(steps)


@contextmanager
def checkout_of(service: Service, directory: Path) -> Iterator[Path]:
    """Make the directory look like the checkout that started this service, with `.venv` and `.data`."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (directory / entry.name).symlink_to(entry)
    (directory / ".venv").symlink_to(sys.prefix)
    (directory / ".data").symlink_to(service.data_dir)
    yield directory


class Reader:
    """Follows steps. `doings` maps names to actions in a browser. `instead` contains replacements for words of the page."""

    def __init__(
        self, service: Service, directory: Path, *, doings: Mapping[str, Callable[[], object]], instead: Mapping[str, str]
    ) -> None:
        self._directory = directory
        self._environment = service.environment | {"HOME": str(directory)}
        self._doings, self._instead = doings, instead
        self._terminals: dict[str, Terminal] = {}
        # For each terminal: the position in its output up to which the blocks of the page have matched.
        self._places: dict[str, int] = {}
        self._last = "first"

    def follow(self, steps: list[Step]) -> int:
        """Run all steps in order. Return the number of compared outputs.

        If an output differs from the page, fail with the step and the output of the terminal.
        """
        acts = {"run": self._run, "shown": self._shown, "file": self._save, "do": self._do, "ctrl-c": self._interrupt}
        with ExitStack() as stack:
            for step in steps:
                if step.kind in acts:
                    self._open(stack, step.terminal)
                    try:
                        acts[step.kind](step)
                    except Exception as error:
                        error.add_note(f"The step: {step}")
                        for name, terminal in self._terminals.items():
                            error.add_note(f"The {name} terminal:\n{terminal.printed}")
                        raise
        return sum(step.kind == "shown" for step in steps)

    def _open(self, stack: ExitStack, name: str) -> None:
        if name not in self._terminals:
            self._terminals[name] = stack.enter_context(Terminal(self._directory, self._environment))
            self._places[name] = 0

    def _run(self, step: Step) -> None:
        terminal, self._last = self._terminals[step.terminal], step.terminal
        self._places[step.terminal] = len(terminal.printed)
        if "runs on" in step.marks:
            terminal.begin(self._put(step.content))
            return
        status, printed = terminal.run(self._put(step.content), seconds=_PATIENCE_SECONDS)
        assert status == 0, f"This ended with {status}:\n{step.content}\nIt printed:\n{printed}"

    def _shown(self, step: Step) -> None:
        name = step.marks.get("terminal", self._last)
        terminal, pattern = self._terminals[name], pattern_of(self._put(step.content))
        try:
            eventually(lambda: pattern.search(terminal.printed, self._places[name]), seconds=_PATIENCE_SECONDS / 2)
        except AssertionError as error:
            printed = terminal.printed[self._places[name] :]
            raise AssertionError(f"The page shows:\n{step.content}\nThe {name} terminal printed:\n{printed}") from error
        found = pattern.search(terminal.printed, self._places[name])
        assert found is not None
        self._places[name] = found.end()

    def _save(self, step: Step) -> None:
        (self._directory / step.marks["file"]).write_text(self._put(step.content))

    def _do(self, step: Step) -> None:
        self._doings[step.content]()

    def _interrupt(self, step: Step) -> None:
        self._terminals[step.content].interrupt()

    def _put(self, text: str) -> str:
        for ours, theirs in self._instead.items():
            text = text.replace(ours, theirs)
        return text
