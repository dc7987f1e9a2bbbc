"""What is kept about providers elsewhere: their metadata, messages that were refused, and tests of connections."""

from __future__ import annotations

from django.db import models

from authapi.models.base import UnrecordedOwned


class ProviderMetadata(UnrecordedOwned):
    """The metadata of one connection's provider, as it was fetched from `address`. Logins use it; the calendar fetches it again."""

    connection = models.OneToOneField("identity.Connection", on_delete=models.CASCADE, related_name="+")
    address = models.CharField(max_length=2048)
    document = models.JSONField(null=True, help_text="What of the document is used; empty until it was fetched once.")
    problem = models.CharField(max_length=500, blank=True, help_text="Why the last attempt failed.")
    fetched_at = models.DateTimeField(null=True)
    # Also the lease of the process that fetches: another attempt may begin some seconds later.
    tried_at = models.DateTimeField()
    due_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        # What is to be fetched again, in every tenant.
        indexes = [models.Index(fields=["due_at"], name="authapi_providermetadata_due")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"metadata of {self.connection_id}"


class RefusedMessage(UnrecordedOwned):
    """The message of a provider that a line of the sign-in log is about, without signatures and ciphers, so that it opens nothing.

    It holds what the provider says of a user and is kept for days only. A text names the line: the line may go first.
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
    """A login that an administrator tries: the provider's answer is judged and shown, and opens no session.

    The provider gets `<id>.<secret>` as its state; the digest of the secret is kept.
    """

    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, editable=False)
    request_id = models.CharField(max_length=64, editable=False)
    callback = models.CharField(max_length=300, editable=False)
    result = models.JSONField(null=True, help_text="What came of it; empty while it waits.")
    message = models.TextField(blank=True, help_text="The provider's answer without signatures.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta(UnrecordedOwned.Meta):
        indexes = [
            # The last test of a connection.
            models.Index(fields=["connection", "-id"], name="authapi_connectiontest_last"),
            models.Index(fields=["expires_at"], name="authapi_connectiontest_expired"),
        ]
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"test {self.pk} of {self.connection_id}"
