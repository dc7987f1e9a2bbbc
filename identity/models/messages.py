"""Message providers and message templates of tenants."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models

from foundation.secrets import vault
from identity.models.base import TenantOwned


class Channel(models.TextChoices):
    """How a message is sent: as an email or as a text message."""

    EMAIL = "email", "Email"
    SMS = "sms", "Text message"


class MessageProvider(TenantOwned):
    """The provider of mails or text messages of a tenant. Secrets are sealed; no page and no response shows them."""

    class Name(models.TextChoices):
        SMTP = "smtp", "SMTP"
        TWILIO = "twilio", "Twilio"
        WEBHOOK = "webhook", "Webhook"

    channel = models.CharField(max_length=8, choices=Channel)
    name = models.CharField(max_length=16, choices=Name)
    is_enabled = models.BooleanField(default=True)
    default_from = models.CharField(max_length=320, blank=True, help_text="Sender of messages whose template has no sender.")
    settings = models.JSONField(default=dict, blank=True)
    sealed_settings = models.JSONField(default=dict, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "channel"], name="identity_messageprovider_one_per_channel")]
        ordering = ("channel",)

    def __str__(self) -> str:
        return f"{self.get_name_display()} for {self.get_channel_display()}"

    def seal(self, secrets: dict[str, str]) -> None:
        """Store these secrets, each encrypted for this tenant, channel and name. Replaces secrets of the same names."""
        sealed = {name: vault.seal(value, place=self._place(name)) for name, value in secrets.items()}
        self.sealed_settings = {**self.sealed_settings, **sealed}

    def secret(self, name: str) -> str:
        """Return a secret in plain text; empty if it is not set. Raises `SecretUnreadable`."""
        token = self.sealed_settings.get(name)
        return vault.unseal(token, place=self._place(name)) if token else ""

    def _place(self, name: str) -> str:
        return f"{self.tenant_id}:message-provider:{self.channel}:{name}"


class MessageTemplate(TenantOwned):
    """The texts of one mail or text message of a tenant in one language. The row without a language applies to all other languages.

    For an empty text, the service's own text applies. The row without a language also says whether the message is sent.
    """

    name = models.CharField(max_length=40)
    channel = models.CharField(max_length=8, choices=Channel, default=Channel.EMAIL)
    language = models.CharField(max_length=16, blank=True)
    subject = models.CharField(max_length=1000, blank=True)
    body = models.TextField(blank=True, max_length=60_000)
    from_address = models.CharField(max_length=1000, blank=True)
    result_url = models.CharField(max_length=2048, blank=True)
    url_lifetime_seconds = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    includes_email_in_redirect = models.BooleanField(default=True)
    is_enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name", "channel", "language"], name="identity_messagetemplate_unique"),
        ]
        ordering = ("name", "language")

    def __str__(self) -> str:
        return f"{self.name} ({self.language})" if self.language else self.name
