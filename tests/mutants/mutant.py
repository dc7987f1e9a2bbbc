"""The description of a mutant: where it is planted, which rule it breaks, and which tests must catch it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A fault in one function, class or constant.

    `at` is `module:qualified.name`. `old` occurs there exactly once and is replaced with `new`. `rule` is one sentence that the
    unchanged source keeps and the mutant breaks. `tests` are node ids or files.
    """

    name: str
    at: str
    old: str
    new: str
    rule: str
    tests: tuple[str, ...]

    @property
    def module(self) -> str:
        return self.at.partition(":")[0]

    @property
    def symbol(self) -> str:
        return self.at.partition(":")[2]

    @property
    def room(self) -> str:
        return self.module.partition(".")[0]
