"""The steps of a trial, each with how it ended, how long it took, and what to do about it. Pure."""

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
    UrlRefused: "Enter SCIM_BASE_URL with https:// and without anything after the path.",
    AddressRefused: "Use a host with public addresses only, or have the operator add its network to OUTBOUND_PRIVATE_NETWORKS.",
    HostUnresolved: "Check the host in SCIM_BASE_URL; it must have a public DNS record.",
    ConnectFailed: "Check host and port, and whether a firewall lets our addresses in.",
    TlsFailed: "Have the server present a valid certificate for this host with its whole chain, and speak TLS 1.2 or newer.",
    ConnectionLost: "The server or something before it ends the connection: look into its log at this time.",
    DeadlinePassed: "The server is slower than SCIM_TIMEOUT_MS allows, or something in between drops packets: raise it, or find that.",
    AnswerTooLarge: "The answer is far larger than SCIM needs: check the address.",
    AnswerUnreadable: "What answers there speaks no HTTP, or garbles it: check host, port and scheme.",
}
_OF_STATUSES = {
    400: "The server refuses the request itself; its message says why.",
    401: "The token is not accepted: enter SCIM_BEARER_TOKEN anew, exactly as the server issued it, and check that it has not expired.",
    403: "The token is known and may not do this: give it the permission to read and write users.",
    404: "Nothing is there: SCIM_BASE_URL usually ends with the version, such as /scim/v2.",
    405: "The server does not take this method here: choose another update mode, or check the address.",
    409: "The server holds a resource with the same name: look for it there.",
    429: "The server limits the rate: wait, and ask its operator for a higher limit.",
    501: "The server does not offer this: choose another update mode.",
}


@dataclass(frozen=True)
class Finding:
    """How a step ended."""

    text: str
    state: State = "ok"
    advice: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One step of a trial, and what it means for the others."""

    name: str
    title: str
    take: Callable[[], Finding]
    # When it fails, the steps behind it are not taken.
    is_needed: bool = False
    # What the report says of the step when it is not taken; without a text the report leaves the step out.
    not_taken: str = ""
    # The name of an earlier step: once that one has begun, this one is taken, even when a step in between raises.
    cleans_up_after: str = ""


@dataclass(frozen=True)
class TakenStep:
    """One step as the report shows it."""

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
    """Runs lists of steps, and keeps how each ended, with secrets masked; without a mask what is said is kept as it is."""

    def __init__(self, mask: Mask | None) -> None:
        self._mask = mask
        self.taken: list[TakenStep] = []

    def run(self, steps: Sequence[Step]) -> bool:
        """Take the steps in their order until a needed one fails; tell whether none of the needed ones did."""
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
        """Title and text of the first step that failed; empty when none did."""
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
    """Return the failure of a step with what can be done about it."""
    if isinstance(error, ActionError):
        text = f"{error}: {error.detail}" if error.detail else str(error)
        return Finding(text, "failed", advice_about(error.status, error.kind))
    return Finding(str(error), "failed", _OF_ERRORS.get(type(error), ""))


def advice_about(status: int | None, kind: str = "") -> str:
    """Return what to do about an answer with this status, or about a failure of this kind."""
    if kind == "shape":
        return "What answers is no SCIM 2.0 server, or breaks RFC 7644: check SCIM_BASE_URL, then show this row to its maker."
    if status is None:
        return ""
    if 300 <= status < 400:
        return "The address redirects, and a redirected write is not safe: enter the address it leads to."
    if status >= 500 and status != 501:
        return "The server has failed: look into its log at this time."
    return _OF_STATUSES.get(status, "")


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return the number with its noun: `1 user`, `2 users`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
