"""Connections: the sources of a tenant's users."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

from foundation.ids import new_connection_id
from identity.models.base import DeletedInParts, RecordedModel
from identity.options.schemas import schema_of
from identity.options.schemas.nodes import Members, Path, split
from identity.options.sealed_options import changed_options, open_option, open_options, seal_options

PASSWORDLESS_STRATEGIES = ("email", "sms")
ENTERPRISE_STRATEGIES = ("oidc", "okta", "samlp", "pingfederate", "adfs", "ad", "waad", "google-apps")
SOCIAL_STRATEGIES = ("google-oauth2", "github", "windowslive", "apple", "facebook", "linkedin", "oauth2")
OTHER_STRATEGIES = ("custom",)


def known_strategies() -> tuple[str, ...]:
    """Return all strategies of connections. The name of the database strategy is a setting."""
    return (settings.DATABASE_STRATEGY, *PASSWORDLESS_STRATEGIES, *ENTERPRISE_STRATEGIES, *SOCIAL_STRATEGIES, *OTHER_STRATEGIES)


class Connection(DeletedInParts, RecordedModel):
    """A source of users: a database, passwordless by email or SMS, an enterprise directory or a social provider."""

    id = models.CharField(primary_key=True, max_length=32, default=new_connection_id, editable=False)
    name = models.CharField(
        max_length=128,
        validators=[RegexValidator(r"^[a-zA-Z0-9](?:-?[a-zA-Z0-9])*$", "Letters, digits and single inner hyphens.")],
        help_text="Cannot be changed: the user ids of enterprise connections contain the name.",
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
            # Target of composite foreign keys, which keep a user and its connection in the same tenant.
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

    @property
    def has_named_ids(self) -> bool:
        """Tell whether user ids contain the name of the connection. This name is needed if two connections of the strategy may have
        different providers: these may use the same subject for different users.
        """
        return self.is_enterprise or self.strategy == "oauth2"

    @property
    def option_schema(self) -> Members:
        """The schema of readable options. All other options are sealed."""
        return schema_of(self.strategy, is_database=self.is_database)

    @property
    def shown_options(self) -> dict[str, Any]:
        """The readable options. Secrets that an older version of the service stored unsealed are left out."""
        return split(self.option_schema, self.options).shown

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Replace the options. Raises `OptionsRefused`. A sealed member that `options` does not name is kept (docs/adr/0075)."""
        self.seal_plain_options()
        self.options, self.sealed_options = changed_options(
            self.option_schema, options, shown=self.options, sealed=self.sealed_options, place=self._secrets_place
        )

    def seal_plain_options(self) -> dict[Path, Any]:
        """Seal the secrets that an older version of the service or of the schema stored unsealed. Returns the secrets by path."""
        parts = split(self.option_schema, self.options)
        # If an option has both a sealed and an unsealed value, the sealed value is newer.
        found = {path: value for path, value in parts.secrets.items() if path not in self.sealed_options}
        if parts.shown != self.options:
            sealed = {**self.sealed_options, **seal_options(found, place=self._secrets_place)}
            self.options, self.sealed_options = parts.shown, dict(sorted(sealed.items()))
        return parts.secrets

    def clear_options(self) -> None:
        """Drop all options, including the sealed options."""
        self.options, self.sealed_options = {}, {}

    def open_options(self) -> dict[str, Any]:
        """Return all options unsealed. Use the result only to act on the options, never in a response."""
        return open_options(self.options, self.sealed_options, place=self._secrets_place)

    def secret_option(self, path: Path) -> str | None:
        """Return a sealed option as clear text, or None if it is not set."""
        sealed = self.sealed_options.get(path)
        if sealed is None:
            return None
        value = open_option(sealed, path, place=self._secrets_place)
        return value if isinstance(value, str) else json.dumps(value)

    @classmethod
    def shown_image(cls, image: dict[str, Any]) -> dict[str, Any]:
        """Return the columns of a row for the audit log, without secrets that an older version stored unsealed."""
        row = cls(strategy=image["strategy"], options=image["options"])
        return {**image, "options": row.shown_options}

    @property
    def _secrets_place(self) -> str:
        return f"{self.tenant_id}:connection:{self.id}"
