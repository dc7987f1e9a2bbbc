"""Mutants of `identity.moving`: the export, the import and the hand-over of a tenant."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="identity-move-digest",
        at="identity.moving.importing:_is_whole",
        old="(ours.rows, ours.digest) != (theirs.rows, theirs.digest)",
        new="ours.rows != theirs.rows",
        rule="The import detects rows that differ from the rows of the source.",
        tests=("tests/identity/moving/test_moves.py",),
    ),
    Mutant(
        name="identity-move-unchanged",
        at="identity.moving.exporting:export_tenant",
        old="_require_unchanged(draft)",
        new="pass",
        rule="An export fails if a row of the tenant was changed while the export ran.",
        tests=("tests/identity/moving/test_moves.py",),
    ),
    Mutant(
        name="identity-move-part-count",
        at="identity.moving.importing:_import_next",
        old="move.parts_done += 1",
        new="move.parts_done += 2",
        rule="Each part of an archive is imported exactly once, even if the import was interrupted.",
        tests=("tests/identity/moving/test_moves.py",),
    ),
    Mutant(
        name="identity-move-refusal",
        at="identity.moving.importing:import_tenant",
        old="if reasons := refusals(archive):",
        new="if (reasons := refusals(archive)) and False:",
        rule="An import with a conflict is refused before it writes a row.",
        tests=("tests/identity/moving/test_moves.py",),
    ),
    Mutant(
        name="identity-move-receipt",
        at="identity.moving.importing:open_tenant",
        old="receipt_digest(receipt) != move.receipt_digest",
        new="not receipt",
        rule="Only the receipt of the source opens an imported tenant.",
        tests=("tests/identity/moving/test_moves.py",),
    ),
)
