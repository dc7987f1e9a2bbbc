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


_REFRESH = "authapi.tokens.refresh_tokens"
_REDELIVERY = "provisioning.dead_letters.redelivery"
_ONLY_KILLS = "The failpoint does nothing unless a fault test kills the process there, and the fault tests are not in this area."
SURVIVORS: tuple[Survivor, ...] = (
    Survivor(
        module=_REFRESH,
        symbol="living_successor",
        old="not row.sealed_successor or row.sealed_until is None or row.sealed_until <= now",
        new="(row.sealed_until is None or row.sealed_until <= now)",
        reason="Both columns are always set together and emptied together.",
    ),
    Survivor(
        module=_REFRESH,
        symbol="give_again",
        old="until, row.issued_until or until",
        new="row.issued_until or until, until",
        reason="The greater of two times does not depend on their order.",
    ),
    Survivor(
        module=_REDELIVERY,
        symbol="redeliver_letters",
        old='failpoints.reach("redelivered")',
        new="pass",
        reason=_ONLY_KILLS,
    ),
    Survivor(
        module=_REDELIVERY,
        symbol="Redelivered",
        old="0",
        new="1",
        reason="Every caller passes both numbers, so the defaults are not used.",
    ),
    Survivor(
        module=f"{_REDELIVERY}_jobs",
        symbol="__all__",
        old='"progress_of"',
        new='""',
        reason="No module imports all names with an asterisk.",
    ),
    Survivor(
        module=f"{_REDELIVERY}_jobs",
        symbol="redeliver_next",
        old='1, min(redelivery.CHUNK, round(asked["rate"] * _PAUSE_SECONDS))',
        new="min(redelivery.CHUNK, round(asked['rate'] * _PAUSE_SECONDS)), 1",
        reason="The greater of two numbers does not depend on their order.",
    ),
    Survivor(
        module="provisioning.engine.lanes",
        symbol="settle",
        old='"settling"',
        new='""',
        reason=_ONLY_KILLS,
    ),
    Survivor(
        module="provisioning.engine.lanes",
        symbol="_claim_unusual",
        old="taken.lane_id == claim.lane_id",
        new="True",
        reason="After the worker has taken another lane, the lock by the old token fails. Only one more statement runs.",
    ),
)


def reason_of(module: str, change: Change) -> str | None:
    """Return the reason why no test notices the mutant, or None."""
    return next((survivor.reason for survivor in SURVIVORS if survivor.is_about(module, change)), None)
