"""How users prove themselves besides a password: enrolled second factors, and links that were mailed to them."""

from __future__ import annotations

from django.db import models

from foundation.ids import new_ticket_id
from foundation.secrets import vault
from identity.models.base import TenantOwned


class EnrolledFactor(TenantOwned):
    """A second factor of a user. No event tells of it, and no answer shows it."""

    class Kind(models.TextChoices):
        PHONE = "phone"
        EMAIL = "email"
        TOTP = "totp"

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="enrolled_factors")
    kind = models.CharField(max_length=8, choices=Kind)
    address = models.CharField(max_length=254, blank=True, help_text="Phone number or e-mail address.")
    sealed_secret = models.TextField(blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantOwned.Meta):
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.kind} of user {self.user_id}"

    def set_secret(self, secret: str) -> None:
        """Keep the shared secret of a one-time password generator, encrypted for this user."""
        self.sealed_secret = vault.seal(secret, place=self._place)

    def secret(self) -> str:
        """Return the shared secret in clear."""
        return vault.unseal(self.sealed_secret, place=self._place)

    @property
    def _place(self) -> str:
        return f"{self.tenant_id}:factor:{self.user_id}:{self.kind}"


class EmailTicket(TenantOwned):
    """A link that proves, once, that an e-mail address belongs to a user. The link itself is signed and not stored."""

    id = models.CharField(primary_key=True, max_length=32, default=new_ticket_id, editable=False)
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="email_tickets")
    job = models.OneToOneField("identity.Job", on_delete=models.SET_NULL, null=True, blank=True, related_name="email_ticket")
    email = models.EmailField(max_length=254)
    # Empty for the primary identity.
    provider = models.CharField(max_length=40, blank=True)
    identifier = models.CharField(max_length=255, blank=True)
    language = models.CharField(max_length=12, blank=True, default="", db_default="", help_text="Of the mail and of the page of the link.")
    parameters = models.JSONField(default=dict, db_default={}, blank=True, help_text="Where the link leads once it was used.")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantOwned.Meta):
        # Tickets that are old enough to go.
        indexes = [models.Index(fields=["expires_at"], name="identity_emailticket_expired")]
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"verification of {self.email}"
