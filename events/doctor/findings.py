"""Results of the doctor: one finding per check, with advice, as text and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any


class Verdict(IntEnum):
    """Severities in ascending order. The exit status of the command is the highest severity of all findings."""

    OK = 0
    WARN = 1
    FAIL = 2


@dataclass(frozen=True)
class Finding:
    """One line of the report. If `was_skipped`, the check did not run; `facts` are the measured values."""

    verdict: Verdict
    name: str
    text: str
    advice: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    was_skipped: bool = False

    @property
    def word(self) -> str:
        if self.was_skipped:
            return "skip"
        return "FAIL" if self.verdict is Verdict.FAIL else self.verdict.name.lower()

    def line(self) -> str:
        """Return the finding as a line of text."""
        return f"{self.word:4} {self.name}: {self.text}{f' -- {self.advice}' if self.advice else ''}"

    def document(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {"verdict": self.word, "check": self.name, "finding": self.text, "advice": self.advice, "facts": self.facts}


def ok(name: str, text: str, **facts: Any) -> Finding:
    return Finding(Verdict.OK, name, text, facts=facts)


def warn(name: str, text: str, advice: str, **facts: Any) -> Finding:
    return Finding(Verdict.WARN, name, text, advice, facts)


def fail(name: str, text: str, advice: str, **facts: Any) -> Finding:
    return Finding(Verdict.FAIL, name, text, advice, facts)


def skip(name: str, text: str) -> Finding:
    return Finding(Verdict.OK, name, text, was_skipped=True)


def worst(findings: Iterable[Finding]) -> Verdict:
    return max((finding.verdict for finding in findings), default=Verdict.OK)
