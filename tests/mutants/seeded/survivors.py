"""Mutants that no test can notice, each with the reason. `make test-seeded-mutants` leaves them out of the score."""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutants.seeded.operators import Change


@dataclass(frozen=True, kw_only=True)
class Survivor:
    """A mutant that changes no behavior. `old` and `new` are the piece and its replacement, with single spaces."""

    module: str
    symbol: str
    old: str
    new: str
    reason: str

    def is_about(self, module: str, change: Change) -> bool:
        told = (change.symbol, " ".join(change.old.split()), " ".join(change.new.split()))
        return module == self.module and told == (self.symbol, self.old, self.new)


SURVIVORS: tuple[Survivor, ...] = ()


def reason_of(module: str, change: Change) -> str | None:
    """Return the reason why no test notices the mutant, or None."""
    return next((survivor.reason for survivor in SURVIVORS if survivor.is_about(module, change)), None)
