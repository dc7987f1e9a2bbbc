"""Runs of the SCIM action against a server. A run uses the same objects that the runner passes to actions, but no database."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from foundation.outbound.outcomes import OutboundRules
from foundation.outbound.session import OutboundSession
from provisioning.actions.event_stream.v1 import ScimUserProvisioning
from provisioning.actions.event_stream.v1.cache import ProcessCaches
from provisioning.actions.event_stream.v1.objects import Api, Event, Message, Run
from provisioning.runs.exchanges import ExchangeRecorder
from provisioning.runs.failures import ActionError
from provisioning.runs.masking import Mask
from provisioning.runs.results import Result
from provisioning.runs.run_log import RunLog
from tests.deadlines import own_time
from tests.factories.links import MemoryLinks, MemoryRun
from tests.factories.scim import TOKEN

LOOPBACK = OutboundRules(private_networks=(ip_network("127.0.0.0/8"),), allow_http=True)
ANNA = {
    "user_id": "database|anna",
    "email": "anna@example.test",
    "email_verified": True,
    "name": "Anna Berg",
    "given_name": "Anna",
    "family_name": "Berg",
    "nickname": "anna",
    "blocked": False,
}


# Created once, because reading the certificate authorities takes longer than most runs.
_SESSION = OutboundSession(LOOPBACK)


class Findings:
    """The proven capabilities of a SCIM server, in a set. Runs read this set and add to it."""

    def __init__(self, *proven: str) -> None:
        self.proven = set(proven)

    def is_proven(self, name: str) -> bool:
        return name in self.proven

    def prove(self, name: str) -> None:
        self.proven.add(name)


@dataclass
class Ran:
    """The end of a run: its result or failure, and the requests and log lines that it recorded.

    `own_seconds` is the time in which the process could run: `seconds` without the time in which the machine ran other processes.
    """

    result: Result | None
    failure: ActionError | None
    exchanges: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    seconds: float
    own_seconds: float
    findings: Findings = field(default_factory=Findings)

    @property
    def reason(self) -> str:
        assert self.result is not None, self.failure
        return self.result.reason

    @property
    def failed(self) -> ActionError:
        assert self.failure is not None, self.result
        return self.failure

    def everything_kept(self) -> str:
        """Return everything that a delivery could store or show, as one text."""
        said = [str(self.failure), repr(self.failure), vars(self.failure) if self.failure else {}, vars(self.result) if self.result else {}]
        return json.dumps([self.exchanges, self.lines, [str(part) for part in said]])


def envelope(event_type: str, document: dict[str, Any] | None = None, *, connection: str = "people", **more: Any) -> dict[str, Any]:
    """Return the envelope of a user event as a stream delivers it."""
    return {
        "specversion": "1.0",
        "type": event_type,
        "source": "urn:svc:acme.acme.example.test",
        "id": "evt_1234567890123456789012",
        "time": "2026-11-21T10:00:00.000Z",
        "data": {
            "object": ANNA if document is None else document,
            "context": {"connection": {"id": "con_1", "name": connection, "strategy": "database"}},
        },
        "x0tenant": "acme",
        "x0stream": "est_1234567890123456789012",
        **more,
    }


def run_event(
    base_url: str,
    event_type: str = "user.created",
    document: dict[str, Any] | None = None,
    *,
    options: dict[str, Any] | None = None,
    mapping: Any = None,
    secrets: dict[str, str] | None = None,
    attempt: int = 1,
    deadline_seconds: float = 10.0,
    findings: Findings | None = None,
    message: dict[str, Any] | None = None,
    links: MemoryLinks | None = None,
    position: int = 0,
    at: MemoryRun | None = None,
    sender: Any = None,
) -> Ran:
    """Run the SCIM action for one event, and return the end of the run. If the run raises `ActionError`, the end contains this error.

    `links` are the links that earlier runs stored. Without a `position`, the event gets a higher position than the events of these runs.
    """
    links = links or MemoryLinks()
    at = at or links.at(position or links.newest + 1)
    values = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN, **(secrets or {})}
    mask = Mask([values["SCIM_BEARER_TOKEN"], values["SCIM_BASE_URL"]])
    log, recorder, findings = RunLog(mask), ExchangeRecorder(mask), findings or Findings()
    started = time.monotonic()
    run = Run(
        options=options or {},
        mapping=mapping,
        attempt=attempt,
        deadline=started + deadline_seconds,
        correlation_id="evt_1234567890123456789012",
        sender=sender or _SESSION,
        recorder=recorder,
        mask=mask,
        capabilities=findings,
        links=at,
        trusted_strategies=frozenset({"database", "email", "sms"}),
        allow_http=True,
    )
    event = Event(Message.of_envelope(message or envelope(event_type, document), prefix="x0"), values)
    result, failure = None, None
    try:
        with own_time() as running:
            result = ScimUserProvisioning().on_execute_event_stream(event, Api(ProcessCaches().of("action", time.time), log, run))
    except ActionError as error:
        failure = error
    at.settle()
    return Ran(result, failure, recorder.documents(), log.lines, time.monotonic() - started, running.seconds, findings)
