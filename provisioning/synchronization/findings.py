"""The result of a synchronization for one user."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from provisioning.models.synchronizations import SynchronizationRow

Outcome = SynchronizationRow.Outcome


@dataclass(frozen=True)
class Finding:
    """The outcome for one user, and whether the synchronization has written to the server. Secrets are already masked."""

    outcome: Outcome
    user_id: str
    scim_id: str = ""
    reason: str = ""
    error_class: str = ""
    differences: list[dict[str, Any]] = field(default_factory=list)
    is_written: bool = False
