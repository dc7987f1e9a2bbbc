"""Reads the blocks of tutorials, which the tests run in order and exactly as they are printed.

A `sh` block contains commands to type into a terminal, a `text` block is the output of these commands, and any other block is a file to
save. A comment above a block repeats an instruction of the text for the test. A rendered page does not show the comment:

    <!-- terminal: second -->   the commands are typed into another terminal
    <!-- runs on -->            the commands do not end, and a later `text` block contains their further output
    <!-- file: follow.py -->    the name under which the reader saves the block
    <!-- ctrl-c: second -->     the reader presses Ctrl+C in this terminal
    <!-- do: log in -->         the reader acts in a browser, and the test has an action with this name
    <!-- not run: why -->       the setup of the test has already run these commands

In a `text` block `...` matches any text within a line, and a line of `...` matches any number of lines.
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
    """A page contains a block or an instruction that the test cannot use."""


@dataclass(frozen=True)
class Step:
    """An action of the reader, or an output. `marks` contains the comments above the block, with their values."""

    kind: str
    content: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def terminal(self) -> str:
        return self.marks.get("terminal", "first")


def steps_of(page: str, *, section: str | None = None) -> list[Step]:
    """Return the steps of a page in order, or only the steps below the heading `section`.

    Raise `NotATutorial` if the page has no such heading, or a block or instruction that the test cannot use.
    """
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
            raise NotATutorial(f"Unknown instruction: {word!r}.")
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
    raise NotATutorial(f"The test cannot use a block of {language or 'no language'!r}.")


def pattern_of(shown: str) -> re.Pattern[str]:
    """Return a pattern that matches an output on a page: its whole lines in order, and any text for `...`."""
    lines = "".join(_line_pattern(line) for line in shown.strip("\n").split("\n"))
    return re.compile(f"^{lines}", re.MULTILINE)


def _line_pattern(line: str) -> str:
    if line.strip() == "...":
        return r"(?:.*\n)*?"
    return re.escape(line.rstrip()).replace(re.escape("..."), ".*") + r"[ \t]*\n"
