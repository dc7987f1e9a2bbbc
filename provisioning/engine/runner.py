"""Runs an action for one event: decrypts the secrets, enforces the budget, passes `event` and `api`, and collects the log.

The runner opens no transaction and writes no delivery; `lanes` decides what the outcome means.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import connection

from foundation.outbound.session import outbound_session
from provisioning.actions.capabilities import ActionCapabilities
from provisioning.actions.event_stream.v1.cache import ProcessCaches
from provisioning.actions.event_stream.v1.objects import Api, Event, Message, Run
from provisioning.actions.pace import NoTurn, pace_of
from provisioning.actions.registry import EntryPoint, EntryPointRefused, entry_point
from provisioning.actions.secrets import open_sealed
from provisioning.actions.setups import Setup
from provisioning.links.rows import RunLinks
from provisioning.runs.exchanges import ExchangeRecorder
from provisioning.runs.failures import ActionCrashed, ActionError, Misconfigured, TransientFailure
from provisioning.runs.interruption import TimeLimit, TimeSpent
from provisioning.runs.masking import Mask, one_line
from provisioning.runs.results import Result, delivered
from provisioning.runs.run_log import RunLog
from provisioning.scim.name_proof import trusted_strategies
from provisioning.scim.settings import BEARER_TOKEN, NOT_CONFIDENTIAL

_logger = structlog.get_logger(__name__)
_caches = ProcessCaches()
_MAX_MESSAGE_CHARACTERS = 500
_SHORTEST_SECRET = 4


@dataclass(frozen=True)
class ActionOutcome:
    """The result of a run without an exception. `detail` contains ids; `log_lines` and `exchanges` are masked documents."""

    recorder: ExchangeRecorder = field(repr=False)
    status: Literal["delivered", "skipped"]
    reason: str
    detail: dict[str, Any] = field(default_factory=dict)
    log_lines: list[dict[str, Any]] = field(default_factory=list)
    # Rows of account links. They are not masked, because an id that happens to contain a secret must stay exact.
    links: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @property
    def exchanges(self) -> list[dict[str, Any]]:
        return self.recorder.documents()


def run_action(
    setup: Setup,
    event_envelope: Mapping[str, Any],
    *,
    attempt: int,
    deadline_seconds: float,
    correlation_id: str,
    links: RunLinks,
    allow_named_deletion: Callable[[str], None] = lambda user_id: None,
) -> ActionOutcome:
    """Run the action for one event within `deadline_seconds`; `attempt` counts all attempts of the delivery from 1.

    `links` reads the account links of the event's user; the outcome or the exception contains the links that changed. Raises a subclass of
    `ActionError` for every failure, with the log lines and exchanges attached. `Misconfigured` means that the stream must be held. Raises
    `NoTurn` if the limit of requests is reached and the run has written nothing. Results and exceptions contain no secrets. An installed
    entry point is interrupted at the deadline; templates check the deadline themselves.
    """
    deadline = time.monotonic() + deadline_seconds
    secrets = open_sealed(setup)
    mask = Mask(_confidential(secrets))
    links.keep_out(_confidential(secrets))
    log, recorder = RunLog(mask), ExchangeRecorder(mask)
    message = Message.of_envelope(event_envelope, prefix=settings.EVENT_ATTRIBUTE_PREFIX)
    try:
        named: Any = {"attempt": attempt, "deadline": deadline, "correlation_id": correlation_id}
        run = _run_of(setup, **named, recorder=recorder, mask=mask, links=links, allow_named_deletion=allow_named_deletion)
        api = Api(cache=_caches.of(str(setup.action_id), time.time), log=log, run=run)
        result = _called(setup, Event(message, secrets), api)
    except ActionError as failure:
        _mask_failure(failure, mask)
        _log_failure(failure, message, log)
        failure.log_lines, failure.exchanges, failure.links = log.lines, recorder.documents(), links.changes
        raise
    finally:
        _repeat_lines(log, setup, message, correlation_id)
    return ActionOutcome(recorder, result.status, result.reason, mask.value(result.detail), log.lines, links.changes)


def _run_of(setup: Setup, **given: Any) -> Run:
    """Build the `Run` from the arguments, the action's configuration and the settings."""
    return Run(
        options=setup.options,
        mapping=setup.mapping,
        sender=outbound_session(),
        capabilities=ActionCapabilities(setup),
        trusted_strategies=trusted_strategies(),
        pace=pace_of(setup, may_be_put_off=True),
        allow_http=settings.OUTBOUND_ALLOW_HTTP,
        **given,
    )


def _confidential(secrets: Mapping[str, str]) -> list[str]:
    """Return the values to mask. Leaves out very short values, because they also occur in other texts, such as ids."""
    values = [value for name, value in secrets.items() if name not in NOT_CONFIDENTIAL and len(value) >= _SHORTEST_SECRET]
    return [*values, secrets.get(BEARER_TOKEN, "")]


def _entry_point(setup: Setup) -> EntryPoint:
    try:
        return entry_point(template=setup.template, path=setup.entry_point)
    except EntryPointRefused as error:
        raise Misconfigured(str(error)) from error


def _called(setup: Setup, event: Event, api: Api) -> Result:
    """Call the entry point; convert exceptions of the action to `ActionCrashed`.

    The exception has no cause, because the text of the original may contain a secret.
    """
    limit = TimeLimit(None if setup.template else api.run.deadline - time.monotonic())
    try:
        with limit:
            result = _entry_point(setup)(event, api)
    except (ActionError, NoTurn):
        raise
    except TimeSpent:
        limit.stop()
        _leave_connection()
        raise TransientFailure("the action did not end in time and was interrupted") from None
    except SoftTimeLimitExceeded:
        raise TransientFailure("the time of this run is used up") from None
    except Exception as error:  # noqa: BLE001  (installed actions may raise any type)
        text = one_line(api.run.mask.text(str(error)), _MAX_MESSAGE_CHARACTERS)
        raise ActionCrashed(f"the action raised {type(error).__name__}: {text}") from None
    return result if isinstance(result, Result) else delivered("completed")


def _leave_connection() -> None:
    """Close the database connection, because the interrupted code may have left a partly read result."""
    if not connection.in_atomic_block:
        connection.close()


def _mask_failure(failure: ActionError, mask: Mask) -> None:
    """Mask secrets in a failure, because an installed action may have put secrets into the message."""
    failure.args = (mask.text(str(failure)),)
    failure.detail = mask.text(failure.detail)


def _log_failure(failure: ActionError, message: Message, log: RunLog) -> None:
    cause = failure.__cause__ if isinstance(failure.__cause__, ActionError) else None
    said = {"status": failure.status, "scim_type": failure.scim_type, "text": str(failure), "detail": failure.detail}
    if cause is not None:
        said |= {"cause_status": cause.status, "cause_scim_type": cause.scim_type, "cause_text": str(cause)}
    user_id = (message.data.object or {}).get("user_id")
    log("error", "sync failed", type=message.type, event_id=message.id, user_id=user_id, failure=failure.class_name, **said)


def _repeat_lines(log: RunLog, setup: Setup, message: Message, correlation_id: str) -> None:
    """Write the stored log lines, which are masked already, to the log of the process."""
    for line in log.lines:
        about = {"tenant": setup.tenant_id, "action": str(setup.action_id), "event_id": message.id, "correlation_id": correlation_id}
        _logger.log(_LEVELS.get(line["level"], 20), line["message"], **about, fields=line["fields"])


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
