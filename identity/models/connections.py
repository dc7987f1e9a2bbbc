"""Connections: where the users of a tenant come from."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

from identity import vault
from identity.ids import new_connection_id
from identity.models.base import DeletedInParts, RecordedModel

PASSWORDLESS_STRATEGIES = ("email", "sms")
ENTERPRISE_STRATEGIES = ("oidc", "okta", "samlp", "pingfederate", "adfs", "ad", "waad", "google-apps")
SOCIAL_STRATEGIES = ("google-oauth2", "oauth2")
OTHER_STRATEGIES = ("custom",)
SECRET_OPTIONS = ("client_secret", "password", "private_key", "bindPassword", "token")


def known_strategies() -> tuple[str, ...]:
    """Return every strategy a connection may have; the name of the database strategy is a setting."""
    return (settings.DATABASE_STRATEGY, *PASSWORDLESS_STRATEGIES, *ENTERPRISE_STRATEGIES, *SOCIAL_STRATEGIES, *OTHER_STRATEGIES)


class Connection(DeletedInParts, RecordedModel):
    """A source of users: a database, passwordless by e-mail or SMS, an enterprise directory or a social provider."""

    id = models.CharField(primary_key=True, max_length=32, default=new_connection_id, editable=False)
    name = models.CharField(
        max_length=128,
        validators=[RegexValidator(r"^[a-zA-Z0-9](?:-?[a-zA-Z0-9])*$", "Letters, digits and single inner hyphens.")],
        help_text="Never renamed: user ids of enterprise connections contain it.",
    )
    strategy = models.CharField(max_length=40)
    display_name = models.CharField(max_length=128, blank=True)
    options = models.JSONField(default=dict, blank=True)
    sealed_options = models.JSONField(default=dict, blank=True, editable=False)
    realms = models.JSONField(default=list, blank=True)
    enabled_clients = models.JSONField(default=list, blank=True)
    is_domain_connection = models.BooleanField(default=False)
    show_as_button = models.BooleanField(null=True, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    authentication = models.JSONField(null=True, blank=True)
    connected_accounts = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(RecordedModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="identity_connection_name_unique"),
            # The other end of composite foreign keys, which keep a user and its connection in one tenant.
            models.UniqueConstraint(fields=["tenant", "id"], name="identity_connection_tenant_id_unique"),
        ]
        # Lists of a tenant's connections, oldest first.
        indexes = [models.Index(fields=["tenant", "created_at", "id"], name="identity_connection_list")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name

    @property
    def is_database(self) -> bool:
        return self.strategy == settings.DATABASE_STRATEGY

    @property
    def is_enterprise(self) -> bool:
        return self.strategy in ENTERPRISE_STRATEGIES

    @property
    def is_social(self) -> bool:
        return self.strategy in SOCIAL_STRATEGIES

    def set_options(self, options: dict[str, Any]) -> None:
        """Replace the options; known secret ones are encrypted and never shown again."""
        self.options = {name: value for name, value in options.items() if name not in SECRET_OPTIONS}
        self.sealed_options = {
            name: vault.seal(str(value), place=f"{self.tenant_id}:connection:{self.id}:{name}")
            for name, value in options.items()
            if name in SECRET_OPTIONS
        }

    def secret_option(self, name: str) -> str | None:
        """Return a secret option in clear, or None when it was never set."""
        token = self.sealed_options.get(name)
        return vault.unseal(token, place=f"{self.tenant_id}:connection:{self.id}:{name}") if token else None
