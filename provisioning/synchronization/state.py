"""The progress of a synchronization, stored in its job. A worker whose lease of the job has ended writes nothing."""

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

# At most this many users are stored for each outcome. Missing users are the exception: all of them are stored. The counts include all
# users.
ROWS_KEPT = 1000
_ACCOUNTS = (Outcome.EXTRA, Outcome.DELETED)


class Overtaken(Exception):
    """Another process has advanced or ended this job, so the progress of this process is discarded. Its writes to the server remain."""


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
    """Write findings and progress in one transaction, and update `job`.

    `accounts` are accounts without a user in this service; no account is stored twice. `there` maps ids of users to the ids of accounts in
    the server's listing: these users are not missing on the server, even if the search by `externalId` did not find their accounts. Raises
    `Overtaken` if the job has ended, or if another process has saved progress since `job` was read.
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
    """Store the result for an account without a user; raise the exceptions of `save`."""
    account.outcome = Outcome.DELETED if is_deleted else Outcome.EXTRA
    account.reason = reason
    account.save(update_fields=["outcome", "reason"])
    save(job, after_account=account.pk)


def account_counts(job: Job) -> dict[str, int]:
    """Return two counts of the accounts without a user in this service: accounts that still exist, and deleted accounts."""
    counted = SynchronizationRow.objects.filter(job=job, outcome__in=_ACCOUNTS).order_by().values("outcome").annotate(number=Count("pk"))
    return {str(outcome): 0 for outcome in _ACCOUNTS} | {row["outcome"]: row["number"] for row in counted}


def outcomes_of(job: Job) -> dict[str, int]:
    """Return the number of users by outcome, in the order of the outcomes."""
    counted = {**job.summary.get("outcomes", {}), **account_counts(job)}
    return {str(outcome): counted[outcome] for outcome in Outcome if counted.get(outcome)}


def _keep(row: Job, findings: Sequence[Finding]) -> dict[str, int]:
    """Store findings up to the limit per outcome, and return the number of users by outcome.

    Users outside the scope have a separate limit, because they may be the majority and would displace other skipped users.
    """
    outcomes = Counter[str](row.summary.get("outcomes", {}))
    outside = row.parameters.get("outside", 0)
    kept = []
    for finding in findings:
        is_outside = finding.outcome == Outcome.SKIPPED and finding.reason == OUTSIDE
        inside = outcomes[finding.outcome] - (outside if finding.outcome == Outcome.SKIPPED else 0)
        # Missing users are stored without a limit, because the listing may show later that their accounts exist.
        if (outside if is_outside else inside) < ROWS_KEPT or finding.outcome == Outcome.MISSING:
            kept.append(_row(row, finding))
        outside += is_outside
        outcomes[str(finding.outcome)] += 1
    row.parameters = {**row.parameters, "outside": outside}
    SynchronizationRow.objects.bulk_create(kept)
    return dict(outcomes)


def _correct_missing(row: Job, outcomes: dict[str, int], there: Mapping[str, str]) -> None:
    """Correct users that were reported as missing although the server's listing contains their accounts."""
    wrong = SynchronizationRow.objects.filter(job=row, outcome=Outcome.MISSING, user_id__in=there.keys())
    for found in wrong:
        found.outcome, found.scim_id = Outcome.UNSEARCHABLE, there[found.user_id][:512]
        found.reason = "the listing contains the account, but the search by externalId does not find it"
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
