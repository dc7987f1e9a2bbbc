"""What a tenant decides about signing in, and the texts of pages that it has written itself."""

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


class CustomText(UnrecordedOwned):
    """The texts of one prompt in one language: {screen: {key: text}}. What is absent has the text of the service."""

    prompt = models.CharField(max_length=64)
    language = models.CharField(max_length=12)
    texts = models.JSONField(default=dict)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "prompt", "language"], name="authapi_customtext_unique")]
        ordering = ("prompt", "language")

    def __str__(self) -> str:
        return f"texts of {self.prompt} in {self.language}"
