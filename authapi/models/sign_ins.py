"""Failed logins that lead to a block, and links for users: to set a password, to lift a block, or to set up a second factor."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned
from foundation.ids import new_ticket_id


class LoginFailures(UnrecordedOwned):
    """Consecutive failed logins for one identifier from one IP address, or from all IP addresses if the tenant counts them together."""

    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, related_name="+")
    identifier = models.CharField(max_length=254, help_text="Email address, username or phone number, in lower case.")
    ip = models.CharField(max_length=45, blank=True, help_text="IP address of the attempts. Empty: all addresses.")
    count = models.PositiveIntegerField(default=0)
    last_failed_at = models.DateTimeField()
    blocked_at = models.DateTimeField(null=True, blank=True)

    class Meta(UnrecordedOwned.Meta):
        verbose_name = verbose_name_plural = "failed logins"
        constraints = [models.UniqueConstraint(fields=["connection", "identifier", "ip"], name="authapi_loginfailures_unique")]
        indexes = [
            # Serves the list in the admin: each page starts after the last row of the page before.
            models.Index(fields=["tenant", "id"], name="authapi_loginfailures_listed"),
            models.Index(fields=["tenant", "identifier"], name="authapi_loginfailures_found"),
            models.Index(fields=["last_failed_at"], name="authapi_loginfailures_expired"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"failures {self.pk}"


class AccountTicket(UnrecordedOwned):
    """A link for a user: to set a new password, to lift a block, or to set up a second factor.

    The link works once; the row stores the digest of its secret.
    """

    class Purpose(models.TextChoices):
        PASSWORD_RESET = "password_reset"  # noqa: S105  (the name of a purpose)
        UNBLOCK = "unblock"
        ENROLLMENT = "enrollment", "Setup of a second factor"

    id = models.CharField(primary_key=True, max_length=32, default=new_ticket_id, editable=False)
    purpose = models.CharField(max_length=16, choices=Purpose)
    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    client = models.ForeignKey("authapi.Client", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    digest = models.CharField(max_length=64, editable=False)
    parameters = models.JSONField(default=dict, blank=True)
    language = models.CharField(
        max_length=12, blank=True, default="", db_default="", help_text="Language of the mail and of the page that its link opens."
    )
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_accountticket_unique")]
        indexes = [
            models.Index(fields=["expires_at"], name="authapi_accountticket_expired"),
            # Serves the list in the admin: each page starts after the last row of the page before.
            models.Index(fields=["tenant", "created_at", "id"], name="authapi_accountticket_listed"),
        ]
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.purpose} {self.pk}"
