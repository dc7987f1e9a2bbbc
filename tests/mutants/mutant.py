"""The description of a mutant: its place in the source, the rule that it breaks, and its tests, at least one of which must fail."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A fault in one function, class or constant.

    `at` is `module:qualified.name`. The source of this name contains `old` exactly once, and the mutant has `new` in its place. `rule` is a
    sentence that is true for the unchanged source and false for the mutant. `tests` are node ids or files.
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
