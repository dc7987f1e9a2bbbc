"""What probes have shown about the server of an action, kept with the action for a day."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from provisioning.models.actions import Action

_BELIEVED_FOR = timedelta(days=1)


class ActionCapabilities:
    """Findings of one action. Only passed probes are kept: a failed one is asked again at the next need."""

    def __init__(self, action: Action) -> None:
        self._action = action

    def is_proven(self, name: str) -> bool:
        """Tell whether the probe `name` was passed within a day."""
        stored = self._action.capabilities.get(name)
        return isinstance(stored, str) and timezone.now() - datetime.fromisoformat(stored) < _BELIEVED_FOR

    def prove(self, name: str) -> None:
        """Store that the probe `name` was passed now, beside what other runs have stored meanwhile."""
        with transaction.atomic():
            row = Action.objects.of(self._action.tenant_id).select_for_update(no_key=True).filter(pk=self._action.pk).first()
            if row is None:
                return
            row.capabilities = {**row.capabilities, name: timezone.now().isoformat()}
            row.save(update_fields=["capabilities"])
        self._action.capabilities = row.capabilities
