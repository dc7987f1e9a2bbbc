"""How far the requests of an action have come that may be sent so many of in a second."""

from __future__ import annotations

from django.db import models

from provisioning.models.actions import Action


class Pace(models.Model):
    """The token bucket of an action as two times: when it is empty no longer, and until when turns are given away."""

    action = models.OneToOneField(Action, on_delete=models.CASCADE, primary_key=True, related_name="pace")
    full_at = models.DateTimeField(help_text="When every token is back, if none is taken until then.")
    promised_until = models.DateTimeField(help_text="Deliveries that found no token were told to come back before this.")

    def __str__(self) -> str:
        return f"{self.action_id}: {self.full_at}"
