"""Pages that are run as they stand: their blocks in order, what they show matched, and no block that is not one of these.

A fence of `sh` is typed into a terminal, a fence of `text` is what it printed, any other is a file to save. Comments above a
fence, which a rendered page does not show, say what a reader sees from the words around it:

    <!-- terminal: second -->   the commands go into another terminal than the one above
    <!-- runs on -->            the commands do not end; what they print later is matched by `text` below
    <!-- file: follow.py -->    the name under which the reader saves the block
    <!-- ctrl-c: second -->     the reader presses Ctrl+C there
    <!-- do: log in -->         the reader does something in a browser; the test does the same by that name
    <!-- not run: why -->       for what the surroundings of the test have done already

In a `text` block `...` stands for anything within a line, and a line of `...` for any lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DIRECTORY = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
PAGES = sorted(page for page in DIRECTORY.glob("*.md") if page.stem not in {"README", "index"})
_STEP = re.compile(
    r"^<!-- (?P<word>[a-z- ]+?)(?:: (?P<value>.+?))? -->$|^```(?P<language>\w*)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL
)
_WORDS = frozenset({"terminal", "runs on", "file", "ctrl-c", "do", "not run"})
_SHELL, _SHOWN = "sh", "text"


class NotATutorial(Exception):
    """A page has something that nobody can run."""


@dataclass(frozen=True)
class Step:
    """One thing that the reader does, or sees. `marks` are the comments above its fence."""

    kind: str
    content: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def terminal(self) -> str:
        return self.marks.get("terminal", "first")


def steps_of(page: str, *, section: str | None = None) -> list[Step]:
    """Return what a reader of the page does, in order, or of what stands under one heading. Raises `NotATutorial`."""
    return list(_steps(page if section is None else _under(page, section)))


def _under(page: str, heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    if found is None:
        raise NotATutorial(f"There is no heading {heading!r}.")
    return found.group(1)


def _steps(text: str) -> Iterator[Step]:
    marks: dict[str, str] = {}
    for found in _STEP.finditer(text):
        word, value = found["word"], found["value"] or ""
        if word is None:
            yield _block(found["language"], found["content"], marks)
            marks = {}
        elif word not in _WORDS:
            raise NotATutorial(f"Nobody knows what {word!r} means.")
        elif word in {"do", "ctrl-c"}:
            yield Step(word, value)
        else:
            marks[word] = value
    if marks:
        raise NotATutorial(f"Nothing follows {', '.join(marks)}.")


def _block(language: str, content: str, marks: dict[str, str]) -> Step:
    if "not run" in marks:
        if not marks["not run"]:
            raise NotATutorial("A block is not run, and the page does not say why.")
        return Step("not run", content, marks)
    if "file" in marks:
        return Step("file", content, marks)
    if language == _SHELL:
        return Step("run", content, marks)
    if language == _SHOWN:
        return Step("shown", content, marks)
    raise NotATutorial(f"A block of {language or 'no language'!r} is neither run, nor shown, nor saved.")


def pattern_of(shown: str) -> re.Pattern[str]:
    """Return what matches an output as a page shows it: its lines in order and whole, `...` for what differs from run to run."""
    lines = "".join(_line_pattern(line) for line in shown.strip("\n").split("\n"))
    return re.compile(f"^{lines}", re.MULTILINE)


def _line_pattern(line: str) -> str:
    if line.strip() == "...":
        return r"(?:.*\n)*?"
    return re.escape(line.rstrip()).replace(re.escape("..."), ".*") + r"[ \t]*\n"
