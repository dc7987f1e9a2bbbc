"""The connection test of a SCIM action: a read-only probe, and on request a write check. It never goes through deliveries."""

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
    """Probe the server of the set-up and return what was seen; with a write check also write, and recommend an update mode.

    Nothing is raised about the server: every failure is a step with advice. Raises `NotSupported` for an action that is not
    the SCIM template, `Conflict` while another trial of the action runs, `Misconfigured` for secrets that do not open.
    """
    require_scim(setup)
    steps = Steps(mask := mask_of(setup))
    with trial(setup, Trial.Kind.WRITE_CHECK if with_write_check else Trial.Kind.CONNECTION, steps, actor=actor) as report:
        opened: list[ScimSession] = []

        def read_settings() -> Finding:
            opened.append(open_session(setup, mask, seconds=BUDGET_SECONDS))
            return Finding("Secrets, options and mapping can be used.")

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
    return f"Usable, with {counted(count, 'thing')} to look at." if count else "Everything works as it should."


def _note(session: ScimSession, report: TrialReport) -> None:
    """Keep the newest result with the action, for its page and for the choice of an update mode."""
    steps = {step.name: step.finding.state for step in report.steps.taken}
    mode = report.findings.get("recommended_update_mode")
    finding = {"at": wire_time(timezone.now()), "server": session.transport.server, "summary": report.summary, "steps": steps}
    session.capabilities.note(FINDING, finding | ({"recommended_update_mode": mode} if mode else {}))
