"""Writes audit entries about decisions, redeliveries, dry runs and exports of dead letters.

Each entry has the actor, the time and the ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest

from identity.admin.scope import staff_of, tenant_in_scope
from identity.audit.entries import record
from provisioning.models import DeadLetter

# Largest number of ids in one entry. The field `count` has the number of all ids.
MOST_NAMED = 100


def note_act(request: HttpRequest, act: str, *, reason: str = "", ids: Sequence[int] = (), about: str = "", **facts: Any) -> None:
    """Record an act on the dead letters with these ids, or on all dead letters of a filter.

    `about` describes the dead letters in a few words.
    """
    staff = staff_of(request)
    if staff is None:
        return
    letters = DeadLetter.objects.filter(pk__in=list(ids[:MOST_NAMED]))
    tenants = set(letters.values_list("tenant_id", flat=True).distinct())
    entry: dict[str, Any] = {"letters": list(ids[:MOST_NAMED]), "count": len(ids) or None, "of": about, **facts}
    tenant = tenants.pop() if len(tenants) == 1 else tenant_in_scope(request)
    record(act, about=letters.first() if len(ids) == 1 else None, tenant_id=tenant, reason=reason, **entry)
