"""Invitations of users to organizations."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from authapi.models.base import UnrecordedOwned
from foundation.ids import new_invitation_id
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret


class Invitation(UnrecordedOwned):
    """An offer to one email address to join an organization. The offer is accepted once, by a login to one application.

    An invitation has two secrets: its ticket, and the secret in the mailed link. The ticket is in a URL that administrators and clients of
    the API see, so the ticket proves nothing about the user. Only the owner of the mailbox gets the link in the mail, so this link proves
    that the user has the mailbox. The row stores only the digest of the secret in the link.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        ACCEPTED = "accepted"
        EXPIRED = "expired"
        REVOKED = "revoked"

    id = models.CharField(primary_key=True, max_length=32, default=new_invitation_id, editable=False)
    organization = models.ForeignKey("identity.Organization", on_delete=models.CASCADE, related_name="+")
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+", verbose_name="application")
    # An invitation is deleted with its connection. Without the connection, the invitation would allow a login through every other
    # connection.
    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    inviter_name = models.CharField(max_length=300)
    email = models.EmailField(max_length=254)
    roles = models.JSONField(default=list, blank=True, help_text="Ids of the roles that the new member gets.")
    user_metadata = models.JSONField(default=dict, blank=True, help_text="Used if the user does not exist yet.")
    app_metadata = models.JSONField(default=dict, blank=True, help_text="Used if the user does not exist yet.")
    language = models.CharField(max_length=35, blank=True, help_text="Language of the mail. Empty: the first language of the tenant.")
    life_seconds = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, editable=False)
    sealed_ticket = models.TextField(editable=False)
    mail_digest = models.CharField(max_length=64, blank=True, editable=False)
    mail_count = models.PositiveSmallIntegerField(default=0, editable=False)
    mailed_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True, editable=False)
    accepted_by = models.ForeignKey("identity.User", on_delete=models.CASCADE, null=True, blank=True, related_name="+", editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(UnrecordedOwned.Meta):
        constraints = [models.UniqueConstraint(fields=["digest", "tenant"], name="authapi_invitation_unique")]
        indexes = [
            # Serves the list of an organization, newest first.
            models.Index(fields=["organization", "created_at", "id"], name="authapi_invitation_list"),
            # Serves the list in the admin: each page starts after the last row of the page before.
            models.Index(fields=["tenant", "created_at", "id"], name="authapi_invitation_listed"),
            # Finds the invitation of a link in a mail.
            models.Index(fields=["tenant", "mail_digest"], name="authapi_invitation_mailed"),
            # Finds the open invitations of one address.
            models.Index(fields=["organization", "email"], name="authapi_invitation_address"),
            models.Index(fields=["expires_at"], name="authapi_invitation_expired"),
        ]
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"invitation of {self.email}"

    def state_at(self, now: datetime) -> Invitation.State:
        """Return whether the invitation is open, accepted, revoked or expired."""
        if self.accepted_at is not None:
            return self.State.ACCEPTED
        if self.revoked_at is not None:
            return self.State.REVOKED
        return self.State.EXPIRED if self.expires_at <= now else self.State.PENDING

    def renew_ticket(self) -> None:
        """Replace the ticket with a new ticket. The old ticket no longer works. Does not save the row."""
        ticket = new_secret()
        self.digest, self.sealed_ticket = digest_of(ticket), vault.seal(ticket, place=self._place)

    @property
    def ticket(self) -> str:
        """The ticket in plain text; empty if the ticket no longer works."""
        return vault.unseal(self.sealed_ticket, place=self._place) if self.sealed_ticket else ""

    @property
    def _place(self) -> str:
        return f"{self.tenant_id}:invitation:{self.pk}:ticket"
