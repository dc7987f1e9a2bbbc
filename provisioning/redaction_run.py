"""Removes secret options of connections from all stored rows and reports which secrets must be rotated.

The run finds the values of secrets in events and dead letters, then masks these values in attempts. Events and dead letters are rewritten
after the attempts. If a run is interrupted, the next run then finds all values again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from django.db import transaction

from events.log import option_redaction as stored_events
from events.models import Head
from events.stream.operating.connections import forget_frames
from identity.audit.entries import record
from identity.option_redaction import Findings, plain_rows, redact_audit_log, seal_row
from provisioning.option_redaction import letter_redactions, redact_attempts, redact_letters
from provisioning.runs.masking import Mask

_NAMED_AT_ONCE = 100


@dataclass
class RedactionReport:
    """How many rows with readable secrets a run found or changed in each table, and which secrets these rows contain."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: Findings = field(default_factory=Findings)
    # Web processes that did not answer the request to drop old frames, by tenant.
    silent_processes: dict[str, int] = field(default_factory=dict)


def redact(*, tenant_id: str | None, is_applied: bool) -> RedactionReport:
    """Search all rows of one tenant, or of every tenant, for readable secrets; remove them if `is_applied`.

    1. Read rows, events, dead letters and the audit log, and collect readable secrets.
    2. Write to each tenant's audit log which secrets must be rotated, before the first value is removed.
    3. Tenant by tenant, rewrite attempts and deliveries, then dead letters, then events. Web processes then drop their cached frames.
    4. Rewrite the marks, the audit log and the rows of connections.
    """
    report = RedactionReport()
    tenants = sorted(Head.objects.values_list("tenant_id", flat=True)) if tenant_id is None else [tenant_id]
    rows = plain_rows(report.findings, tenant_id=tenant_id)
    for one in tenants:
        _look(one, report)
    report.counts["audit log"] = redact_audit_log(report.findings, tenant_id=tenant_id, is_applied=False)
    report.counts["connections"] = len(rows)
    report.counts["marks"] = stored_events.plain_marks(tenant_id)
    if is_applied:
        for one in report.findings.tenants():
            _note(one, report.findings)
    for one in tenants:
        _rewrite(one, report, is_applied=is_applied)
    if is_applied:
        stored_events.redact_marks(tenant_id)
        redact_audit_log(report.findings, tenant_id=tenant_id, is_applied=True)
        for owner, connection_id in rows:
            seal_row(tenant_id=owner, connection_id=connection_id)
    return report


def _look(tenant_id: str, report: RedactionReport) -> None:
    for _, found in stored_events.redactions(tenant_id):
        report.counts["events"] += 1
        for connection_id, path, value in found.removed:
            report.findings.note(tenant_id, connection_id, path, value, table="events")
    for _, _, found in letter_redactions(tenant_id):
        report.counts["dead letters"] += 1
        for connection_id, path, value in found.removed:
            report.findings.note(tenant_id, connection_id, path, value, table="dead letters")


def _note(tenant_id: str, findings: Findings) -> None:
    """Write to the audit log which secrets must be rotated, because a repeated run does not find secrets that are already removed."""
    named = [f"{connection_id} {path}" for connection_id, path, _ in findings.of(tenant_id)]
    with transaction.atomic():
        for first in range(0, len(named), _NAMED_AT_ONCE):
            record("Took options of connections out of the log", tenant_id=tenant_id, rotate=named[first : first + _NAMED_AT_ONCE])


def _rewrite(tenant_id: str, report: RedactionReport, *, is_applied: bool) -> None:
    mask = Mask(report.findings.texts(tenant_id))
    report.counts["attempts and deliveries"] += redact_attempts(tenant_id, mask, is_applied=is_applied)
    if not is_applied:
        return
    redact_letters(tenant_id, mask)
    # Also drop frames if this run has rewritten no event but found secrets elsewhere: an earlier run may have stopped after it rewrote
    # events and before it dropped the frames.
    if stored_events.redact_events(tenant_id) or report.findings.of(tenant_id):
        report.silent_processes[tenant_id] = forget_frames(tenant_id)[1]
