"""Runs an action for one event: opens the secrets, keeps the budget, hands over `event` and `api`, collects what was said.

It holds no transaction and writes no delivery: what the outcome means is decided by the lane.
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
    """How a run ended that raised nothing. `detail` holds ids, `log_lines` and `exchanges` are masked documents."""

    recorder: ExchangeRecorder = field(repr=False)
    status: Literal["delivered", "skipped"]
    reason: str
    detail: dict[str, Any] = field(default_factory=dict)
    log_lines: list[dict[str, Any]] = field(default_factory=list)
    # Rows of links, unmasked: an id in which a secret occurs must still be the id.
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
    """Run the action for one event within `deadline_seconds`; `attempt` counts from 1 over the life of the delivery.

    `links` knows the accounts of the event's user; what the run learns of them is in the outcome, or in the failure. Raises a subclass
    of `ActionError` for everything that is no delivery, with the log lines and exchanges attached, and `NoTurn` when the limit of
    requests leaves no room now and nothing was written. `Misconfigured` means that the stream must be held. Nothing that leaves here
    holds a secret. An installed entry point is interrupted when the time is over; the templates keep to it by themselves.
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
    """Return the circumstances of a run: what is given, and what the set-up and the process say."""
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
    """Return the values that are masked. Very short ones are no secrets and stand in everything, ids included."""
    values = [value for name, value in secrets.items() if name not in NOT_CONFIDENTIAL and len(value) >= _SHORTEST_SECRET]
    return [*values, secrets.get(BEARER_TOKEN, "")]


def _entry_point(setup: Setup) -> EntryPoint:
    try:
        return entry_point(template=setup.template, path=setup.entry_point)
    except EntryPointRefused as error:
        raise Misconfigured(str(error)) from error


def _called(setup: Setup, event: Event, api: Api) -> Result:
    """Call the entry point; an error of its own becomes `ActionCrashed`, without the cause, whose text may hold a secret."""
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
        raise TransientFailure("the time of this run is spent") from None
    except Exception as error:  # noqa: BLE001  (installed actions raise what they like)
        text = one_line(api.run.mask.text(str(error)), _MAX_MESSAGE_CHARACTERS)
        raise ActionCrashed(f"the action raised {type(error).__name__}: {text}") from None
    return result if isinstance(result, Result) else delivered("completed")


def _leave_connection() -> None:
    """Close the database connection: the interrupted code may have left a statement half read on it."""
    if not connection.in_atomic_block:
        connection.close()


def _mask_failure(failure: ActionError, mask: Mask) -> None:
    """Take secrets out of a failure: an installed action may say in it what it should not."""
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
    """Repeat the kept lines in the log of the process; they are masked already."""
    for line in log.lines:
        about = {"tenant": setup.tenant_id, "action": str(setup.action_id), "event_id": message.id, "correlation_id": correlation_id}
        _logger.log(_LEVELS.get(line["level"], 20), line["message"], **about, fields=line["fields"])


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
