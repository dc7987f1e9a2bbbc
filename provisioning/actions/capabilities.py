"""Stores the capabilities of an action's server in the row of the action. Each capability is the result of a check of the server."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from provisioning.actions.setups import Setup
from provisioning.models.actions import Action

_BELIEVED_FOR = timedelta(days=1)


class ActionCapabilities:
    """Capabilities of one action's server. Only passed checks are stored; a failed check is repeated when its result is needed again."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def is_proven(self, name: str) -> bool:
        """Tell whether the server passed the check `name` within the last day, or whether its stored result is permanent."""
        stored = self._setup.capabilities.get(name)
        if stored is True:
            return True
        return isinstance(stored, str) and timezone.now() - datetime.fromisoformat(stored) < _BELIEVED_FOR

    def prove(self, name: str) -> None:
        """Store that the server has passed the check `name` now. Keeps findings that other runs have stored meanwhile."""
        self.note(name, timezone.now().isoformat())

    def note(self, name: str, finding: Any) -> None:
        """Store a finding under `name`: the time at which the server passed the check, or True for a permanent result."""
        with transaction.atomic():
            row = Action.objects.of(self._setup.tenant_id).select_for_update(no_key=True).filter(pk=self._setup.action_id).first()
            if row is None:
                return
            row.capabilities = {**row.capabilities, name: finding}
            row.save(update_fields=["capabilities"])
        self._setup.capabilities.update(row.capabilities)
