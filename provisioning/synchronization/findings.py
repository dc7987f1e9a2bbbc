"""What became of one user of a synchronization."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from provisioning.models.synchronizations import SynchronizationRow

Outcome = SynchronizationRow.Outcome


@dataclass(frozen=True)
class Finding:
    """How it ended, and whether the server was written to. Secrets are masked before it is made."""

    outcome: Outcome
    user_id: str
    scim_id: str = ""
    reason: str = ""
    error_class: str = ""
    differences: list[dict[str, Any]] = field(default_factory=list)
    is_written: bool = False
