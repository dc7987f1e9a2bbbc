"""The login settings of a tenant, and its own texts for pages."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned
from foundation.secrets import vault


class TenantSettings(UnrecordedOwned):
    """The settings of one tenant, by their names on the wire. Missing settings have the default of `authapi.tenant_settings`."""

    values = models.JSONField(default=dict, blank=True)
    attack_protection = models.JSONField(default=dict, blank=True)
    sealed_values = models.JSONField(default=dict, db_default={}, blank=True, editable=False)
    second_factors = models.JSONField(default=dict, db_default={}, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant"], name="authapi_tenantsettings_unique")]

    def __str__(self) -> str:
        return f"settings of {self.tenant_id}"

    def seal(self, name: str, secret: str) -> None:
        """Store a secret, encrypted for this tenant and name, in place of an earlier secret. An empty secret deletes the stored secret."""
        sealed = {known: value for known, value in self.sealed_values.items() if known != name}
        self.sealed_values = {**sealed, **({name: vault.seal(secret, place=self._place(name))} if secret else {})}

    def secret(self, name: str) -> str:
        """Return a secret in plain text; empty if no secret is stored. Raises `SecretUnreadable`."""
        token = self.sealed_values.get(name)
        return vault.unseal(token, place=self._place(name)) if token else ""

    def _place(self, name: str) -> str:
        return f"{self.tenant_id}:tenant-settings:{name}"


class CustomText(UnrecordedOwned):
    """The texts of one prompt in one language: {screen: {key: text}}. For a missing text, pages show the text of the service."""

    prompt = models.CharField(max_length=64)
    language = models.CharField(max_length=12)
    texts = models.JSONField(default=dict)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "prompt", "language"], name="authapi_customtext_unique")]
        ordering = ("prompt", "language")

    def __str__(self) -> str:
        return f"texts of {self.prompt} in {self.language}"
