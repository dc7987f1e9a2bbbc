"""What probes have shown about the server of an action, kept with the action for a day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from provisioning.actions.setups import Setup
from provisioning.models.actions import Action

_BELIEVED_FOR = timedelta(days=1)


class ActionCapabilities:
    """Findings of one action. Only passed probes are kept: a failed one is asked again at the next need."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def is_proven(self, name: str) -> bool:
        """Tell whether the probe `name` was passed within a day, or was found to hold for good."""
        stored = self._setup.capabilities.get(name)
        if stored is True:
            return True
        return isinstance(stored, str) and timezone.now() - datetime.fromisoformat(stored) < _BELIEVED_FOR

    def prove(self, name: str) -> None:
        """Store that the probe `name` was passed now, beside what other runs have stored meanwhile."""
        self.note(name, timezone.now().isoformat())

    def note(self, name: str, finding: Any) -> None:
        """Store what a test has found under `name`; a time counts as a probe that was passed then, True as one that holds for good."""
        with transaction.atomic():
            row = Action.objects.of(self._setup.tenant_id).select_for_update(no_key=True).filter(pk=self._setup.action_id).first()
            if row is None:
                return
            row.capabilities = {**row.capabilities, name: finding}
            row.save(update_fields=["capabilities"])
        self._setup.capabilities.update(row.capabilities)
