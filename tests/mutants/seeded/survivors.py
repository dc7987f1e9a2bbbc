"""Mutants that no test can notice, each with the reason. `make test-seeded-mutants` counts them as equivalent, and not as missed."""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutants.seeded.operators import Change


@dataclass(frozen=True, kw_only=True)
class Survivor:
    """A mutant that changes no behavior. `old` is the changed piece, and `new` its replacement, both with single spaces."""

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
_NUMBERING = "events.log.numbering"
_RECORDER = "events.record.recorder"
_LOG = "events.log.reading"
_ONLY_KILLS = (
    "Only the fault tests use the failpoint: they kill the process at this point. The fault tests are not among the tests of this area."
)
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
        reason="After the worker has taken another lane, the lock with the old token fails. So the mutant only runs one statement more.",
    ),
    Survivor(
        module=_REDELIVERY,
        symbol="_rebuilt",
        old="stored is None",
        new="True",
        reason="The mutant always uses the body in the dead letter, which is a copy of the body of the stored event.",
    ),
    Survivor(
        module=_NUMBERING,
        symbol="_IDLE_SECONDS",
        old="1.0",
        new="2.0",
        reason="After this pause, the numberer looks for events of processes that have ended. A longer pause delays only these events.",
    ),
    Survivor(
        module=_NUMBERING,
        symbol="number_batch",
        old='"numbered"',
        new='""',
        reason=_ONLY_KILLS,
    ),
    Survivor(
        module=_NUMBERING,
        symbol="open_connection",
        old='"cursor_factory"',
        new='""',
        reason="The statements of the numberer give the same result with the cursor class of Django.",
    ),
    Survivor(
        module=_NUMBERING,
        symbol="Numberer.__init__",
        old="0.0",
        new="1.0",
        reason="The monotonic clock is far beyond 0 and 1 when the numberer first compares it with this time.",
    ),
    Survivor(
        module=_NUMBERING,
        symbol="Numberer.notify",
        old="self._wake.set()",
        new="pass",
        reason="The thread also wakes up by itself after a second, so the mutant only delays the numbering of the event.",
    ),
    Survivor(
        module=_NUMBERING,
        symbol="Numberer.start",
        old='"numberer"',
        new='""',
        reason="The name of a thread changes only what a debugger shows.",
    ),
    Survivor(
        module=_NUMBERING,
        symbol="Numberer.stop",
        old="self._wake.set()",
        new="pass",
        reason="The thread also wakes up by itself after a second, so the mutant only delays the end of the process.",
    ),
    Survivor(
        module=_LOG,
        symbol="LogReader.start_at",
        old="first - 1, bounds.head",
        new="bounds.head, first - 1",
        reason="The smaller of two positions does not depend on their order.",
    ),
    Survivor(
        module=_LOG,
        symbol="LogReader.pages",
        old="True",
        new="False",
        reason="Both lists have one element for each request.",
    ),
    Survivor(
        module=_LOG,
        symbol="_page",
        old="5",
        new="6",
        reason="If the position of a row is missing, its recording time is missing, too, and vice versa.",
    ),
    Survivor(
        module=_LOG,
        symbol="_HANDLE_TIMEOUT_SECONDS",
        old="5.0",
        new="6.0",
        reason="The exact time to wait for a connection is not a documented behavior.",
    ),
    Survivor(
        module="provisioning.engine.lane_rows",
        symbol="_CLAIM",
        old=">",
        new=">=",
        reason="A delivery that still waits is not marked as written, so the delivery does not supersede itself.",
    ),
    Survivor(
        module=f"{_REDELIVERY}_jobs",
        symbol="redeliver_next",
        old='redelivery.CHUNK, round(asked["rate"] * _PAUSE_SECONDS)',
        new="round(asked['rate'] * _PAUSE_SECONDS), redelivery.CHUNK",
        reason="The smaller of two numbers does not depend on their order.",
    ),
    Survivor(
        module=_LOG,
        symbol="read_pool",
        old="60.0",
        new="61.0",
        reason="The exact time after which an unused connection is closed is not a documented behavior.",
    ),
    Survivor(
        module=_NUMBERING,
        symbol="Numberer._run",
        old="database is not None",
        new="False",
        reason="Without the call of `close`, the numberer uses a working connection again. psycopg itself closes a broken connection.",
    ),
    Survivor(
        module=_NUMBERING,
        symbol="Numberer._look_at_replication",
        old="time.monotonic() - self._replication_at",
        new="(time.monotonic() + self._replication_at)",
        reason="The mutant only reads the state of the replication more often.",
    ),
    Survivor(
        module=_RECORDER,
        symbol="record_changes",
        old="of_kind",
        new="True",
        reason="A kind without marked documents adds an empty list of keys, for which the statements change nothing.",
    ),
    Survivor(
        module=_RECORDER,
        symbol="record_changes",
        old='failpoints.reach("recording")',
        new="pass",
        reason=_ONLY_KILLS,
    ),
    *(
        Survivor(module=_RECORDER, symbol="record_changes", old=old, new=new, reason=_ONLY_KILLS)
        for old, new in (('failpoints.reach("recorded")', "pass"), ('"recorded"', '""'), ('"recording"', '""'))
    ),
    Survivor(
        module=_RECORDER,
        symbol="record_changes",
        old='"events.record"',
        new='""',
        reason="The name of a span is in traces only, and the tests of traces are not in this area.",
    ),
    Survivor(
        module=_RECORDER,
        symbol="_insert",
        old="True",
        new="False",
        reason="All rows have the same number of values.",
    ),
    Survivor(
        module="provisioning.links.rows",
        symbol="write_links",
        old="documents",
        new="True",
        reason="For an empty list, the statement changes nothing.",
    ),
    Survivor(
        module="authapi.protocols.oauth.authorization_request",
        symbol="ClientFacts",
        old="False",
        new="True",
        reason="The service passes every value, so the defaults are not used.",
    ),
    Survivor(
        module="events.record.tripwire",
        symbol="install",
        old="not wanted",
        new="False",
        reason="If no trigger is missing, the statements replace the function with an equal function.",
    ),
    Survivor(
        module="events.record.tripwire",
        symbol="_Turn",
        old="0",
        new="1",
        reason="The first sweep of the mutant leaves out at most the first mark of the database, and the second sweep finds this mark.",
    ),
    Survivor(
        module="events.record.tripwire",
        symbol="sweep",
        old="0",
        new="1",
        reason="The next sweep of the mutant leaves out at most the first mark of the database, which an earlier sweep has removed.",
    ),
    Survivor(
        module="events.record.tripwire",
        symbol="sweep",
        old="document not in set(present)",
        new="True",
        reason="A document that was just recorded has no mark, so the sweep does nothing if it processes the document a second time.",
    ),
    Survivor(
        module="events.record.tripwire",
        symbol="_sweep_document",
        old="recorded",
        new="True",
        reason="Adding 0 to the number of recorded changes changes nothing.",
    ),
    Survivor(
        module="events.record.tripwire",
        symbol="_sweep_document",
        old="mark",
        new="True",
        reason="Before this point, `_locked` has returned true, and it does so only for a document with a mark. So the mark exists.",
    ),
)


def reason_of(module: str, change: Change) -> str | None:
    """Return the reason why no test can notice the mutant, or None if the mutant is not a known survivor."""
    return next((survivor.reason for survivor in SURVIVORS if survivor.is_about(module, change)), None)
