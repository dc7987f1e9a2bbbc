"""Notes about acts on dead letters, among the changes of staff accounts: who, when, why, and which letters. Only ever added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest

from identity.admin.scope import staff_of
from provisioning.models import DeadLetter

# A note names so many letters; the count says how many there were.
MOST_NAMED = 100


def note_act(request: HttpRequest, act: str, *, reason: str = "", ids: Sequence[int] = (), about: str = "", **facts: Any) -> None:
    """Note what was done to several letters, or to all that a filter shows; `about` says in a few words what it was done to."""
    staff = staff_of(request)
    if staff is None:
        return
    LogEntry.objects.create(
        user_id=staff.pk,
        content_type_id=ContentType.objects.get_for_model(DeadLetter).pk,
        object_id=str(ids[0]) if len(ids) == 1 else None,
        object_repr=(about or f"{len(ids)} dead letters")[:200],
        action_flag=CHANGE,
        change_message=_message(act, reason, ids, facts),
    )


def _message(act: str, reason: str, ids: Sequence[int], facts: dict[str, Any]) -> str:
    told = {name: value for name, value in facts.items() if value not in (None, "", (), {})}
    parts = [act, *(f"{name} {value}" for name, value in told.items())]
    if ids:
        named = ", ".join(map(str, ids[:MOST_NAMED]))
        parts.append(f"letters {named}" + (f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""))
    return ("; ".join(parts) + (f". Reason: {reason}" if reason else "."))[:4000]
