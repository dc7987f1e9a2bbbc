"""Runs tutorials exactly as written: their blocks in order. Compares the displayed output with the real output.

A `sh` block is typed into a terminal, a `text` block is its output, and every other block is a file to save. A comment
above a block, which a rendered page does not show, repeats an instruction of the text for the test:

    <!-- terminal: second -->   the commands are typed into another terminal
    <!-- runs on -->            the commands do not end, and a `text` block below matches their later output
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
    """Raised if a page has a block that cannot be run."""


@dataclass(frozen=True)
class Step:
    """One action of the reader, or one output. `marks` are the comments above its block."""

    kind: str
    content: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def terminal(self) -> str:
        return self.marks.get("terminal", "first")


def steps_of(page: str, *, section: str | None = None) -> list[Step]:
    """Return the steps of a page in order, or the steps of the section below one heading. Raise `NotATutorial` for an invalid page."""
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
    """Return a pattern for an output on a page: whole lines in order, with `...` for varying parts."""
    lines = "".join(_line_pattern(line) for line in shown.strip("\n").split("\n"))
    return re.compile(f"^{lines}", re.MULTILINE)


def _line_pattern(line: str) -> str:
    if line.strip() == "...":
        return r"(?:.*\n)*?"
    return re.escape(line.rstrip()).replace(re.escape("..."), ".*") + r"[ \t]*\n"
