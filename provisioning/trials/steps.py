"""The steps of a trial, each with outcome, duration and advice. Pure."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from foundation.outbound.outcomes import (
    AddressRefused,
    AnswerTooLarge,
    AnswerUnreadable,
    ConnectFailed,
    ConnectionLost,
    DeadlinePassed,
    HostUnresolved,
    OutboundError,
    TlsFailed,
    UrlRefused,
)
from provisioning.runs.failures import ActionError
from provisioning.runs.masking import Mask, one_line

State = Literal["ok", "warning", "failed", "skipped"]
STATES: tuple[State, ...] = ("ok", "warning", "failed", "skipped")
_LONGEST_TEXT = 500

_OF_ERRORS: dict[type[OutboundError], str] = {
    UrlRefused: "Enter SCIM_BASE_URL with https:// and without query and fragment.",
    AddressRefused: "Use a host with public addresses only, or have the operator add its network to OUTBOUND_PRIVATE_NETWORKS.",
    HostUnresolved: "Check the host in SCIM_BASE_URL; it must have a public DNS record.",
    ConnectFailed: "Check the host and port, and whether a firewall allows connections from this service.",
    TlsFailed: "The server needs a valid certificate for this host with the complete chain, and TLS 1.2 or newer.",
    ConnectionLost: "The server or a proxy closed the connection: check the logs of both at the time of this test.",
    DeadlinePassed: "The server is slower than SCIM_TIMEOUT_MS, or a firewall drops packets: raise SCIM_TIMEOUT_MS or check the network.",
    AnswerTooLarge: "The answer is too large for SCIM: check the URL.",
    AnswerUnreadable: "The answer is not valid HTTP: check host, port and scheme.",
}
_OF_STATUSES = {
    400: "The server refuses the request; see its message.",
    401: "The token is not accepted: enter SCIM_BEARER_TOKEN again, exactly as issued, and check that it has not expired.",
    403: "The token is valid but lacks a permission: allow it to read and write users.",
    404: "The server has no such path: SCIM_BASE_URL usually ends with the version, such as /scim/v2.",
    405: "The server does not support this method at this address: choose another update mode, or check the address.",
    409: "Another resource on the server has the same name: search for it on the server.",
    429: "The server limits the rate: wait, and ask its operator for a higher limit.",
    501: "The server does not support this operation: choose another update mode.",
}


@dataclass(frozen=True)
class Finding:
    """The result of a step."""

    text: str
    state: State = "ok"
    advice: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One step of a trial, and its effect on later steps."""

    name: str
    title: str
    take: Callable[[], Finding]
    # If this step fails, later steps are not run.
    is_needed: bool = False
    # The text in the report if the step is not run. If the text is empty, the report omits the step.
    not_taken: str = ""
    # The name of an earlier step. If the earlier step has begun, this step always runs, even if a step in between raises an exception.
    cleans_up_after: str = ""


@dataclass(frozen=True)
class TakenStep:
    """One step of the report."""

    name: str
    title: str
    finding: Finding
    duration_ms: float

    @property
    def document(self) -> dict[str, Any]:
        shown = {"name": self.name, "title": self.title, "state": self.finding.state, "message": self.finding.text}
        advice = {"advice": self.finding.advice} if self.finding.advice else {}
        details = {"details": self.finding.details} if self.finding.details else {}
        return {**shown, **advice, "duration_ms": self.duration_ms, **details}


class Steps:
    """Runs lists of steps and collects their results, with secrets masked if there is a mask."""

    def __init__(self, mask: Mask | None) -> None:
        self._mask = mask
        self.taken: list[TakenStep] = []

    def run(self, steps: Sequence[Step]) -> bool:
        """Run the steps in order until a needed step fails; return True if all needed steps succeeded."""
        left, begun, is_stopped = deque(steps), set[str](), False
        try:
            while left:
                step = left.popleft()
                if is_stopped and step.cleans_up_after not in begun:
                    self._leave_out(step)
                    continue
                begun.add(step.name)
                has_failed = self._take(step) == "failed"
                is_stopped |= step.is_needed and has_failed
        finally:
            for step in left:
                if step.cleans_up_after in begun:
                    self._take(step)
        return not is_stopped

    def _take(self, step: Step) -> State:
        started = time.monotonic()
        try:
            finding = step.take()
        except (ActionError, OutboundError) as error:
            finding = failed(error)
        self._keep(step, finding, round((time.monotonic() - started) * 1000, 1))
        return finding.state

    def _leave_out(self, step: Step) -> None:
        if step.not_taken:
            self._keep(step, Finding(step.not_taken, "skipped"), 0.0)

    @property
    def first_failure(self) -> str:
        """Title and text of the first failed step; empty if there is none."""
        return next((f"{step.title}: {step.finding.text}" for step in self.taken if step.finding.state == "failed"), "")

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [step.document for step in self.taken]

    def _keep(self, step: Step, finding: Finding, duration_ms: float) -> None:
        if self._mask is not None:
            text = one_line(self._mask.text(finding.text), _LONGEST_TEXT)
            finding = replace(finding, text=text, details=self._mask.value(finding.details))
        self.taken.append(TakenStep(step.name, step.title, finding, duration_ms))


def failed(error: ActionError | OutboundError) -> Finding:
    """Convert an exception to the finding of a failed step, with advice."""
    if isinstance(error, ActionError):
        text = f"{error}: {error.detail}" if error.detail else str(error)
        return Finding(text, "failed", advice_about(error.status, error.kind))
    return Finding(str(error), "failed", _OF_ERRORS.get(type(error), ""))


def advice_about(status: int | None, kind: str = "") -> str:
    """Return advice for an answer with this status, or for a failure of this kind."""
    if kind == "shape":
        return "The answer does not comply with RFC 7644: check SCIM_BASE_URL, then report this step to the server's vendor."
    if status is None:
        return ""
    if 300 <= status < 400:
        return "The URL redirects, and redirected writes are not safe: enter the target of the redirect."
    if status >= 500 and status != 501:
        return "The server failed: check the server's log at the time of this test."
    return _OF_STATUSES.get(status, "")


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return the number with its noun: `1 user`, `2 users`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
