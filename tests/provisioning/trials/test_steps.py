"""How a trial runs its steps: which steps run after a step has failed, and which steps are skipped."""

from __future__ import annotations

import pytest

from provisioning.runs.failures import DataFailure
from provisioning.runs.masking import Mask
from provisioning.trials.steps import Finding, Step, Steps


def fails() -> Finding:
    raise DataFailure("refused with the token hunter22")


def crashes() -> Finding:
    raise RuntimeError


def step(name: str, *, is_needed: bool = False, not_taken: str = "", cleans_up_after: str = "") -> Step:
    return Step(name, name.title(), lambda: Finding("done"), is_needed, not_taken, cleans_up_after)


def states(steps: Steps) -> list[tuple[str, str]]:
    return [(taken.name, taken.finding.state) for taken in steps.taken]


def test_no_step_runs_after_a_failed_required_step_and_its_error_is_masked() -> None:
    steps = Steps(Mask(["hunter22"]))
    assert not steps.run([Step("ask", "Ask", fails, is_needed=True), step("read", not_taken="Not read."), step("write")])
    assert states(steps) == [("ask", "failed"), ("read", "skipped")]
    assert steps.first_failure == "Ask: refused with the token ***"


def test_a_failed_optional_step_does_not_stop_later_steps() -> None:
    steps = Steps(None)
    assert steps.run([Step("ask", "Ask", fails), step("write")])
    assert states(steps) == [("ask", "failed"), ("write", "ok")]


def test_a_cleanup_step_runs_only_if_its_resource_may_exist() -> None:
    steps = Steps(None)
    steps.run([Step("create", "Create", fails, is_needed=True), step("delete", cleans_up_after="create"), step("judge")])
    assert states(steps) == [("create", "failed"), ("delete", "ok")]
    steps = Steps(None)
    steps.run([Step("ask", "Ask", fails, is_needed=True), step("create"), step("delete", cleans_up_after="create")])
    assert states(steps) == [("ask", "failed")]


def test_a_cleanup_step_runs_if_an_earlier_step_crashes() -> None:
    steps = Steps(None)
    with pytest.raises(RuntimeError):
        steps.run([step("create"), Step("change", "Change", crashes), step("read"), step("delete", cleans_up_after="create")])
    assert states(steps) == [("create", "ok"), ("delete", "ok")]
