"""Account links map a user to an account on a server. Account locks serialize writes of several streams to one server.

Neither table has a database foreign key to the tenant or the action: with a foreign key, a purge would deadlock with deliveries. A link
must remain after its action is deleted, because the account still belongs to the user.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class AccountLink(models.Model):
    """The account of one user on one server, as recorded by one action; see `provisioning.scim.links.Link`."""

    class Origin(models.TextChoices):
        CREATED = "created", "Created by this service"
        ADOPTED = "adopted", "Existing account, taken over"
        SYNCHRONIZED = "synchronized", "Linked by a synchronization"
        SEEN = "seen", "Found by its externalId"
        BY_NAME = "by name", "Found only by its userName"

    tenant_id = models.CharField(max_length=63)
    action_id = models.UUIDField()
    server = models.CharField(max_length=32, help_text="Digest of the server's base URL.")
    user_id = models.CharField(max_length=400)
    remote_id = models.TextField("account", blank=True, help_text="The id on the server; empty while it is unknown.")
    birth = models.BigIntegerField(help_text="Log position of the event that created the link. Older events are skipped.")
    ended = models.BigIntegerField(null=True, help_text="Log position of the event that deleted the user.")
    position = models.BigIntegerField(help_text="Log position of the last event that changed the link.")
    user_names = models.JSONField(default=list, help_text="Usernames recently sent to the account.")
    user_name = models.TextField(blank=True, help_text="The last username that the server confirmed.")
    keys = models.JSONField("externalIds", default=list, help_text="Values of externalId recently sent to the account.")
    is_keyed = models.BooleanField(default=False, help_text="The server has returned the account with the user's externalId.")
    created_there = models.CharField(max_length=64, blank=True, help_text="meta.created as returned by the server.")
    is_missing = models.BooleanField(default=False, help_text="The server answered that the account does not exist.")
    doubt = models.BigIntegerField(null=True, help_text="Log position of the event whose create request was sent, but not answered.")
    origin = models.CharField(max_length=16, choices=Origin, blank=True)
    is_suspect = models.BooleanField(default=False, help_text="The link authorizes no write until an administrator confirms it.")
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["action_id", "server", "user_id"], name="provisioning_accountlink_user_unique"),
        ]
        indexes = [
            # Each run reads the links of its user, and the links of the accounts that a lookup returned.
            models.Index(fields=["server", "user_id"], name="provisioning_accountlink_users"),
            models.Index(fields=["server", "remote_id"], name="provisioning_accountlink_ids"),
            # Keyset pagination of the admin's list.
            models.Index(fields=["tenant_id", "id"], name="provisioning_accountlink_list"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.remote_id or 'no account'}"

    @property
    def is_unconfirmed(self) -> bool:
        """Whether an administrator may confirm the link, by the same rule as `UNCONFIRMED`."""
        is_created = self.origin == self.Origin.CREATED and self.ended is None and bool(self.remote_id)
        return self.is_suspect or (is_created and not (self.user_names or self.user_name or self.created_there))


# Selects suspects, and links that come from a recorded create without a user name: the server may have reassigned the id of such a link.
UNCONFIRMED = models.Q(is_suspect=True) | models.Q(
    ~models.Q(remote_id=""), origin=AccountLink.Origin.CREATED, ended=None, user_names=[], user_name="", created_there=""
)


class AccountLock(models.Model):
    """Lock of one user's account on a server to which several streams write. The run that has the `token` may write until `until`."""

    tenant_id = models.CharField(max_length=63)
    server = models.CharField(max_length=32)
    user_id = models.CharField(max_length=400)
    token = models.UUIDField()
    until = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "server", "user_id"], name="provisioning_accountlock_user_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} on {self.server}"


class NamedDeletions(models.Model):
    """Accounts that were identified by their user name alone, and that a stream has deleted within the current hour."""

    stream_id = models.CharField(primary_key=True, max_length=26)
    tenant_id = models.CharField(max_length=63)
    window_began_at = models.DateTimeField(db_default=Now())
    user_ids = models.JSONField(default=list, help_text="Users whose accounts were deleted in the current hour.")

    class Meta:
        verbose_name_plural = "named deletions"

    def __str__(self) -> str:
        return f"{self.stream_id}: {len(self.user_ids)}"
