"""The connection test of a SCIM action: a read-only probe, and on request a write check. It never goes through deliveries."""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone

from foundation.timestamps import wire_time
from provisioning.actions.setups import Setup
from provisioning.models import Trial
from provisioning.scim.probing import ConnectionProbe
from provisioning.scim.write_check import WriteCheck
from provisioning.trials.scim_sessions import ScimSession, mask_of, open_session, require_scim
from provisioning.trials.steps import Finding, Steps, counted
from provisioning.trials.trials import BUDGET_SECONDS, TrialReport, trial

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
        if steps.take("settings", "Secrets and options", read_settings):
            is_reached = ConnectionProbe(opened[0], steps).run()
            if with_write_check and is_reached:
                _fly(opened[0], steps, report)
            elif with_write_check:
                steps.skip("create", "Create a marked user", "Not tried: the server cannot be reached or used.")
        report.summary = _summary(report)
        if opened:
            _note(opened[0], report)
    return report


def _fly(session: ScimSession, steps: Steps, report: TrialReport) -> None:
    mode = WriteCheck(session, steps).run()
    if mode:
        report.findings["recommended_update_mode"] = mode

    def recommend() -> Finding:
        if not mode:
            return Finding("No way of updating did what it should.", "failed", "Users can be created and deleted here, but not changed.")
        if mode == session.options.update_mode:
            return Finding(f"The action uses {mode}, which works.")
        return Finding(f"Use {mode}.", "warning", f"Set update_mode to {mode}: the action uses {session.options.update_mode}.")

    if any(step.name == "put" for step in steps.taken):
        steps.take("recommendation", "Recommended update mode", recommend)


def _summary(report: TrialReport) -> str:
    counts = {state: sum(step.finding.state == state for step in report.steps.taken) for state in ("failed", "warning")}
    first = next((step for step in report.steps.taken if step.finding.state == "failed"), None)
    if first is not None:
        return f"{first.title}: {first.finding.text}"
    return "Everything works as it should." if not counts["warning"] else f"Usable, with {counted(counts['warning'], 'thing')} to look at."


def _note(session: ScimSession, report: TrialReport) -> None:
    """Keep the newest result with the action, for its page and for whoever chooses an update mode."""
    steps = {step.name: step.finding.state for step in report.steps.taken}
    mode = report.findings.get("recommended_update_mode")
    finding = {"at": wire_time(timezone.now()), "server": session.transport.server, "summary": report.summary, "steps": steps}
    session.capabilities.note(FINDING, finding | ({"recommended_update_mode": mode} if mode else {}))
