"""The APIs for which tokens are issued, and the client grants for them."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from authapi.management_scopes import MANAGEMENT_SCOPES
from authapi.models.base import UnrecordedOwned
from foundation.ids import new_client_grant_id, new_hex_id
from foundation.secrets import vault

MAX_TOKEN_SECONDS = 2_592_000
MAX_SCOPES = 1000


class ApiResource(UnrecordedOwned):
    """An API (resource server): the audience of the tokens that are issued for it. The management interface of a tenant is an API, too."""

    class Dialect(models.TextChoices):
        ACCESS_TOKEN = "access_token"  # noqa: S105  (the name of a dialect)
        ACCESS_TOKEN_AUTHZ = "access_token_authz"  # noqa: S105
        RFC9068_PROFILE = "rfc9068_profile"
        RFC9068_PROFILE_AUTHZ = "rfc9068_profile_authz"

    id = models.CharField(primary_key=True, max_length=24, default=new_hex_id, editable=False)
    identifier = models.CharField(
        max_length=600, help_text="The audience of tokens for the API: its address, or any other text. It cannot be changed."
    )
    name = models.CharField(max_length=200, blank=True)
    scopes = models.JSONField(default=list, blank=True, help_text='A list of {"value", "description"}.')
    token_lifetime = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_TOKEN_SECONDS)],
        help_text="In seconds. If this is empty, the default of the platform applies.",
    )
    token_dialect = models.CharField(max_length=32, choices=Dialect, default=Dialect.ACCESS_TOKEN)
    sealed_signing_secret = models.TextField(blank=True, default="", editable=False, help_text="Secret for tokens signed with HS256.")
    settings = models.JSONField(
        default=dict, blank=True, help_text="Requirements for tokens of users, under their names in the management API."
    )
    is_system = models.BooleanField(default=False, editable=False, help_text="This API is the management interface of the service.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        verbose_name = "API"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "identifier"], name="authapi_apiresource_identifier_unique"),
            models.UniqueConstraint(fields=["tenant"], condition=models.Q(is_system=True), name="authapi_apiresource_one_system"),
            models.UniqueConstraint(fields=["tenant", "id"], name="authapi_apiresource_tenant_id_unique"),
        ]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name or self.identifier

    @property
    def signing_secret(self) -> str:
        """The secret in plain text, which signs tokens of the API with HS256; empty if the API has no secret."""
        return vault.unseal(self.sealed_signing_secret, place=self._secret_place) if self.sealed_signing_secret else ""

    def set_signing_secret(self, secret: str) -> None:
        """Seal and store the secret; an empty secret deletes the stored secret."""
        self.sealed_signing_secret = vault.seal(secret, place=self._secret_place) if secret else ""

    @property
    def _secret_place(self) -> str:
        return f"{self.tenant_id}:api:{self.pk}:signing_secret"

    @property
    def scope_values(self) -> tuple[str, ...]:
        """The names of the scopes of the API. The scopes of the management interface come from the release, not from the row."""
        if self.is_system:
            return tuple(MANAGEMENT_SCOPES)
        return tuple(scope["value"] for scope in self.scopes)

    @property
    def scope_descriptions(self) -> dict[str, str]:
        """The description of each scope; empty if a scope has no description."""
        if self.is_system:
            return MANAGEMENT_SCOPES
        return {scope["value"]: scope.get("description") or "" for scope in self.scopes}


class ClientGrant(UnrecordedOwned):
    """What one client may request at one API: for itself, or for users, depending on `subject_type`."""

    class SubjectType(models.TextChoices):
        CLIENT = "client"
        USER = "user"

    id = models.CharField(primary_key=True, max_length=32, default=new_client_grant_id, editable=False)
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="client_grants")
    api_resource = models.ForeignKey(ApiResource, on_delete=models.CASCADE, related_name="client_grants")
    scopes = models.JSONField(default=list, blank=True)
    subject_type = models.CharField(max_length=8, choices=SubjectType, default=SubjectType.CLIENT)
    allows_all_scopes = models.BooleanField(
        default=False, help_text="Allows every scope of the API, including scopes that are added later."
    )
    settings = models.JSONField(default=dict, blank=True, help_text="Settings for organizations, under their names in the management API.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["client", "api_resource", "subject_type"], name="authapi_clientgrant_unique"),
            models.UniqueConstraint(fields=["tenant", "id"], name="authapi_clientgrant_tenant_id_unique"),
        ]
        # Serves the list of a tenant's grants, oldest first.
        indexes = [models.Index(fields=["tenant", "created_at", "id"], name="authapi_clientgrant_list")]
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.id

    @property
    def granted_scopes(self) -> tuple[str, ...]:
        """The scopes that the grant contains now."""
        return self.api_resource.scope_values if self.allows_all_scopes else tuple(self.scopes)
