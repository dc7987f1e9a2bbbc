"""Data about external providers: their metadata, messages that were refused, and tests of connections."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned


class ProviderMetadata(UnrecordedOwned):
    """The metadata of one connection's provider, as fetched from `address`. Logins use it; a scheduled task refreshes it."""

    connection = models.OneToOneField("identity.Connection", on_delete=models.CASCADE, related_name="+")
    address = models.CharField(max_length=2048)
    document = models.JSONField(null=True, help_text="The parts of the metadata that logins use; empty until the first successful fetch.")
    problem = models.CharField(max_length=500, blank=True, help_text="Why the last attempt failed.")
    fetched_at = models.DateTimeField(null=True)
    # The time of the last attempt. This time is also a lease: another process may begin an attempt only some seconds later.
    tried_at = models.DateTimeField()
    due_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        # Finds the providers of all tenants whose metadata is due.
        indexes = [models.Index(fields=["due_at"], name="authapi_providermetadata_due")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"metadata of {self.connection_id}"


class RefusedMessage(UnrecordedOwned):
    """A refused message of a provider. Its signatures and its encrypted data are removed, so that it cannot begin a session.

    The message contains data of a user, so it is kept for a few days only. The row stores the id of its line in the sign-in log as text and
    not as a foreign key, because the line may be deleted first.
    """

    line_id = models.CharField(max_length=32)
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["line_id", "tenant"], name="authapi_refusedmessage_unique")]
        indexes = [models.Index(fields=["created_at"], name="authapi_refusedmessage_expired")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"message of {self.line_id}"


class ConnectionTest(UnrecordedOwned):
    """A test login by an administrator: the provider's answer is checked and shown, but begins no session.

    The provider gets `<id>.<secret>` as its state; the row stores the digest of the secret.
    """

    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, editable=False)
    request_id = models.CharField(max_length=64, editable=False)
    callback = models.CharField(max_length=300, editable=False)
    result = models.JSONField(null=True, help_text="The result; empty while the test is pending.")
    message = models.TextField(blank=True, help_text="The provider's answer without signatures.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        indexes = [
            # Finds the last test of a connection.
            models.Index(fields=["connection", "-id"], name="authapi_connectiontest_last"),
            models.Index(fields=["expires_at"], name="authapi_connectiontest_expired"),
        ]
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"test {self.pk} of {self.connection_id}"
