"""What a tenant decides about signing in."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned


class TenantSettings(UnrecordedOwned):
    """The settings of one tenant by the names of the wire; what is absent has the default of `authapi.tenant_settings`."""

    values = models.JSONField(default=dict, blank=True)
    attack_protection = models.JSONField(default=dict, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant"], name="authapi_tenantsettings_unique")]

    def __str__(self) -> str:
        return f"settings of {self.tenant_id}"
