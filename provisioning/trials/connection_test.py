"""The connection test of a SCIM action: a read-only check, and optionally a write check. It does not use deliveries."""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone

from foundation.timestamps import wire_time
from provisioning.actions.setups import Setup
from provisioning.models import Trial
from provisioning.trials.probing import ConnectionProbe
from provisioning.trials.scim_sessions import ScimSession, mask_of, open_session, require_scim
from provisioning.trials.steps import Finding, Step, Steps, counted
from provisioning.trials.trials import BUDGET_SECONDS, TrialReport, trial
from provisioning.trials.write_check import WriteCheck

FINDING = "connection test"


def run_connection_test(setup: Setup, *, actor: str, with_write_check: bool = False) -> TrialReport:
    """Check the server and return a report; a write check also writes a test user and recommends an update mode.

    Failures of the server are steps of the report, with advice. Raises `NotSupported` for actions without the SCIM template,
    `Conflict` while another trial of the action runs, and `Misconfigured` for secrets that cannot be decrypted.
    """
    require_scim(setup)
    steps = Steps(mask := mask_of(setup))
    with trial(setup, Trial.Kind.WRITE_CHECK if with_write_check else Trial.Kind.CONNECTION, steps, actor=actor) as report:
        opened: list[ScimSession] = []

        def read_settings() -> Finding:
            opened.append(open_session(setup, mask, seconds=BUDGET_SECONDS))
            return Finding("Secrets, options and mapping are valid.")

        report.findings["outbound_addresses"] = list(settings.OUTBOUND_ADDRESSES)
        if steps.run([Step("settings", "Secrets and options", read_settings, is_needed=True)]):
            check = WriteCheck(opened[0])
            steps.run(ConnectionProbe(opened[0]).steps + (check.steps if with_write_check else []))
            if check.recommended_mode:
                report.findings["recommended_update_mode"] = check.recommended_mode
        report.summary = steps.first_failure or _summary(steps)
        if opened:
            _note(opened[0], report)
    return report


def _summary(steps: Steps) -> str:
    count = sum(step.finding.state == "warning" for step in steps.taken)
    return f"Usable, with {counted(count, 'warning')}." if count else "All checks passed."


def _note(session: ScimSession, report: TrialReport) -> None:
    """Store the newest result with the action. The page of the action and the choice of an update mode use this result."""
    steps = {step.name: step.finding.state for step in report.steps.taken}
    mode = report.findings.get("recommended_update_mode")
    finding = {"at": wire_time(timezone.now()), "server": session.transport.server, "summary": report.summary, "steps": steps}
    session.capabilities.note(FINDING, finding | ({"recommended_update_mode": mode} if mode else {}))
