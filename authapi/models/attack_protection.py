"""Protection of logins against attacks: blocked IP addresses, known browsers, and notices to administrators."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned


class AddressBlock(UnrecordedOwned):
    """An IP address that has used up its attempts, for example to log in. This row only shows the block to administrators: rate-limit
    buckets decide whether to refuse a request (`authapi.accounts.suspicion`).
    """

    address = models.CharField(max_length=45, help_text="An IPv4 address, or the /64 network of IPv6 addresses.")
    stage = models.CharField(max_length=32)
    blocked_at = models.DateTimeField()
    last_refused_at = models.DateTimeField()
    ends_at = models.DateTimeField(help_text="The block ends at this time or earlier.")
    is_refused = models.BooleanField(
        help_text="If on, requests from the IP address are refused. Otherwise, administrators are only notified."
    )

    class Meta(UnrecordedOwned.Meta):
        verbose_name_plural = "blocked addresses"
        constraints = [models.UniqueConstraint(fields=["tenant", "address", "stage"], name="authapi_addressblock_unique")]
        indexes = [
            # Serves the list in the admin: each page starts after the last row of the page before.
            models.Index(fields=["tenant", "id"], name="authapi_addressblock_listed"),
            models.Index(fields=["ends_at"], name="authapi_addressblock_expired"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"block {self.pk}"


class KnownBrowser(UnrecordedOwned):
    """A browser in which a user has logged in, with the digest of its cookie. A new password of a user deletes all rows of this user."""

    user = models.ForeignKey("identity.User", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, editable=False)
    created_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    told_at = models.DateTimeField(
        null=True, blank=True, help_text="Time of the email to the user about the first login in this browser. Empty: no email was sent."
    )

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["user", "digest"], name="authapi_knownbrowser_unique")]
        indexes = [
            # Serves the list in the admin: each page starts after the last row of the page before.
            models.Index(fields=["tenant", "id"], name="authapi_knownbrowser_listed"),
            models.Index(fields=["last_seen_at"], name="authapi_knownbrowser_expired"),
        ]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"browser {self.pk}"


class AttackNotice(UnrecordedOwned):
    """The notices of one kind to the administrators of a tenant.

    There is one row for each tenant and kind. An attack marks the row as due, and one mail reports all attacks since the previous mail.
    """

    class Kind(models.TextChoices):
        LEAKED_PASSWORDS = "leaked_passwords"
        BLOCKED_ADDRESSES = "blocked_addresses"

    kind = models.CharField(max_length=24, choices=Kind)
    # The start of the period that was not reported yet. This column and the next column are null if no notice is pending.
    since = models.DateTimeField(null=True, blank=True)
    due_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "kind"], name="authapi_attacknotice_unique")]
        indexes = [models.Index(fields=["due_at"], name="authapi_attacknotice_due")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.kind} of {self.tenant_id}"
