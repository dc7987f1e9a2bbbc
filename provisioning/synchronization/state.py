"""How far a synchronization is: kept with its job, and written so that a worker that lost the job writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count
from django.utils import timezone

from foundation.database.transactions import unit_of_work
from identity.models import Job
from identity.services.jobs import LEASE
from provisioning.actions.scope import OUTSIDE
from provisioning.models.synchronizations import SynchronizationRow
from provisioning.synchronization import holders
from provisioning.synchronization.findings import Finding, Outcome

# Of each outcome so many users are named; the counts are exact.
ROWS_KEPT = 1000
_ACCOUNTS = (Outcome.EXTRA, Outcome.DELETED)


class Overtaken(Exception):
    """Somebody else has moved this job on or ended it: what was done here has been done, and is not written."""


@unit_of_work
def save(
    job: Job,
    findings: Sequence[Finding] = (),
    *,
    accounts: Sequence[Finding] = (),
    there: Mapping[str, str] | None = None,
    total: int = 0,
    details: str | None = None,
    lease_seconds: float = LEASE.total_seconds(),
    **progress: Any,
) -> None:
    """Write what was found and how far the job is in one transaction, and bring `job` up to date.

    `accounts` are those without a user here; one that was noted before is not noted twice. `there` names users whom the listing of
    the server holds, with the ids of their accounts: none of them is missing, whatever its filter found. Raises `Overtaken` unless the
    job stands where `job` says.
    """
    row = Job.objects.of(job.tenant_id).select_for_update(no_key=True).get(pk=job.pk)
    if row.is_finished or row.parameters.get("saves", 0) != job.parameters.get("saves", 0):
        raise Overtaken
    outcomes = _keep(row, findings)
    SynchronizationRow.objects.bulk_create([_row(row, account) for account in accounts], ignore_conflicts=True)
    _correct_missing(row, outcomes, there or {})
    if accounts or "phase" in progress:
        outcomes |= account_counts(row)
    done = row.summary.get("done", 0) + len(findings)
    row.summary = {**row.summary, "outcomes": outcomes, "done": done, "total": max(row.summary.get("total", 0), total, done)}
    row.parameters = {**row.parameters, **holders.mark(), **progress, "saves": row.parameters.get("saves", 0) + 1}
    row.status_details = row.status_details if details is None else details[:500]
    row.lease_until = timezone.now() + timedelta(seconds=lease_seconds)
    row.save(update_fields=["parameters", "summary", "status_details", "lease_until", "updated_at"])
    job.parameters, job.summary, job.status_details = row.parameters, row.summary, row.status_details


@unit_of_work
def save_deletion(job: Job, account: SynchronizationRow, *, is_deleted: bool, reason: str = "") -> None:
    """Note what became of an account that had no user here; raise as `save` does."""
    account.outcome = Outcome.DELETED if is_deleted else Outcome.EXTRA
    account.reason = reason
    account.save(update_fields=["outcome", "reason"])
    save(job, after_account=account.pk)


def account_counts(job: Job) -> dict[str, int]:
    """Count the accounts without a user here: those that are there, and those that were deleted."""
    counted = SynchronizationRow.objects.filter(job=job, outcome__in=_ACCOUNTS).order_by().values("outcome").annotate(number=Count("pk"))
    return {str(outcome): 0 for outcome in _ACCOUNTS} | {row["outcome"]: row["number"] for row in counted}


def outcomes_of(job: Job) -> dict[str, int]:
    """Return how many users ended how, in the order of the outcomes."""
    counted = {**job.summary.get("outcomes", {}), **account_counts(job)}
    return {str(outcome): counted[outcome] for outcome in Outcome if counted.get(outcome)}


def _keep(row: Job, findings: Sequence[Finding]) -> dict[str, int]:
    """Name what was found as long as there is room, and return how many ended how.

    Users outside the scope have room of their own: they may be nearly everybody, and the other skipped ones are worth reading.
    """
    outcomes = Counter[str](row.summary.get("outcomes", {}))
    outside = row.parameters.get("outside", 0)
    kept = []
    for finding in findings:
        is_outside = finding.outcome == Outcome.SKIPPED and finding.reason == OUTSIDE
        inside = outcomes[finding.outcome] - (outside if finding.outcome == Outcome.SKIPPED else 0)
        # All that are missing are kept: the listing of the server may say that they are not.
        if (outside if is_outside else inside) < ROWS_KEPT or finding.outcome == Outcome.MISSING:
            kept.append(_row(row, finding))
        outside += is_outside
        outcomes[str(finding.outcome)] += 1
    row.parameters = {**row.parameters, "outside": outside}
    SynchronizationRow.objects.bulk_create(kept)
    return dict(outcomes)


def _correct_missing(row: Job, outcomes: dict[str, int], there: Mapping[str, str]) -> None:
    """Take back that users are missing whose accounts the server's own listing holds."""
    wrong = SynchronizationRow.objects.filter(job=row, outcome=Outcome.MISSING, user_id__in=there.keys())
    for found in wrong:
        found.outcome, found.scim_id = Outcome.UNSEARCHABLE, there[found.user_id][:512]
        found.reason = "the listing holds the account, and the search by externalId does not find it"
    changed = SynchronizationRow.objects.bulk_update(wrong, ["outcome", "scim_id", "reason"]) if wrong else 0
    if changed:
        outcomes[str(Outcome.MISSING)] = outcomes.get(str(Outcome.MISSING), 0) - changed
        outcomes[str(Outcome.UNSEARCHABLE)] = outcomes.get(str(Outcome.UNSEARCHABLE), 0) + changed


def _row(job: Job, finding: Finding) -> SynchronizationRow:
    return SynchronizationRow(
        job=job,
        outcome=finding.outcome,
        user_id=finding.user_id[:400],
        scim_id=finding.scim_id[:512],
        reason=finding.reason.replace("\0", "")[:2000],
        error_class=finding.error_class[:32],
        differences=finding.differences,
    )
