"""Executions: every run of an action, readable by its id for ten days.

An attempt of a delivery is an execution. Its id is not stored, but computed from the delivery's id and the attempt's number.
A trial, which an administrator starts, is an execution, too.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import RFC_4122, UUID

from django.utils import timezone

from events.models import EventStream
from foundation.timestamps import wire_time
from identity.services.failures import NotFound
from provisioning.actions.registry import TRIGGER
from provisioning.engine.retention import TRIALS_KEPT_DAYS
from provisioning.models import Action, Attempt, Trial

# RFC 9562, 5.8: version 8 has 48 + 12 + 62 bits for custom use.
_VERSION = 8
_LOW = (1 << 62) - 1


def execution_id(delivery_id: int, attempt: int) -> UUID:
    """Return the id of one attempt of a delivery."""
    high = (delivery_id >> 12) << 16 | _VERSION << 12 | delivery_id & 0xFFF
    return UUID(int=high << 64 | 0b10 << 62 | attempt)


def execution_document(*, tenant_id: str, identifier: str) -> dict[str, Any]:
    """Return the document of the execution; raise `NotFound` if the execution does not exist or is older than ten days."""
    try:
        wanted = UUID(identifier)
    except ValueError as error:
        raise NotFound("The execution does not exist.") from error
    since = timezone.now() - timedelta(days=TRIALS_KEPT_DAYS)
    found = _of_attempt(tenant_id, wanted, since) if _is_attempt(wanted) else _of_trial(tenant_id, wanted, since)
    if found is None:
        raise NotFound("The execution does not exist.")
    return found


def _is_attempt(wanted: UUID) -> bool:
    return wanted.variant == RFC_4122 and wanted.version == _VERSION


def _of_attempt(tenant_id: str, wanted: UUID, since: datetime) -> dict[str, Any] | None:
    high, number = wanted.int >> 64, wanted.int & _LOW
    delivery_id = high >> 16 << 12 | high & 0xFFF
    if number > 2**31 - 1:
        return None
    tries = Attempt.objects.filter(delivery_id=delivery_id, number=number, tenant_id=tenant_id, started_at__gte=since)
    attempt = tries.select_related("delivery").defer("exchanges").first()
    if attempt is None:
        return None
    stream = EventStream.objects.of(tenant_id).filter(pk=attempt.delivery.stream_id, destination_type="action").first()
    if stream is None:
        return None
    name = Action.objects.of(tenant_id).filter(pk=stream.destination["action_id"]).values_list("name", flat=True).first()
    ended = None if attempt.duration_ms is None else attempt.started_at + timedelta(milliseconds=attempt.duration_ms)
    error = {"id": attempt.error_class, "msg": attempt.error_message} if attempt.error_class else None
    return _document(wanted, name or "", error=error, started_at=attempt.started_at, ended_at=ended)


def _of_trial(tenant_id: str, wanted: UUID, since: datetime) -> dict[str, Any] | None:
    trials = Trial.objects.filter(pk=wanted, action__tenant_id=tenant_id, started_at__gte=since)
    trial = trials.select_related("action").first()
    if trial is None:
        return None
    error = {"id": trial.outcome, "msg": trial.summary} if trial.outcome in (Trial.Outcome.FAILED, Trial.Outcome.LOST) else None
    is_running = trial.outcome == Trial.Outcome.RUNNING
    return _document(
        wanted,
        trial.action.name,
        error=error,
        started_at=trial.started_at,
        ended_at=trial.ended_at,
        status="pending" if is_running else "final",
    )


def _document(
    identifier: UUID, name: str, *, error: dict[str, str] | None, started_at: datetime, ended_at: datetime | None, status: str = "final"
) -> dict[str, Any]:
    result: dict[str, Any] = {"action_name": name} | ({"error": error} if error else {}) | {"started_at": wire_time(started_at)}
    if ended_at is not None:
        result["ended_at"] = wire_time(ended_at)
    return {
        "id": str(identifier),
        "trigger_id": TRIGGER,
        "status": status,
        "results": [result],
        "created_at": wire_time(started_at),
        "updated_at": wire_time(ended_at or started_at),
    }
