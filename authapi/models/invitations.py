"""Invitations of people to organizations."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from authapi.models.base import UnrecordedOwned
from foundation.ids import new_invitation_id
from foundation.secrets import vault
from foundation.secrets.random_secrets import digest_of, new_secret


class Invitation(UnrecordedOwned):
    """An offer to one e-mail address to join an organization, accepted once by logging in to one application.

    Two secrets name it. The ticket stands in the address that administrators and the API see, and proves nothing about who uses it.
    The link of the mail is known to the mailbox alone, so that it proves the address; only its digest is kept.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        ACCEPTED = "accepted"
        EXPIRED = "expired"
        REVOKED = "revoked"

    id = models.CharField(primary_key=True, max_length=32, default=new_invitation_id, editable=False)
    organization = models.ForeignKey("identity.Organization", on_delete=models.CASCADE, related_name="+")
    client = models.ForeignKey("authapi.Client", on_delete=models.CASCADE, related_name="+", verbose_name="application")
    # An invitation goes with its connection: without it the invitation would open every other way in.
    connection = models.ForeignKey("identity.Connection", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    inviter_name = models.CharField(max_length=300)
    email = models.EmailField(max_length=254)
    roles = models.JSONField(default=list, blank=True, help_text="Ids of the roles that the new member gets.")
    user_metadata = models.JSONField(default=dict, blank=True, help_text="For a user who does not exist yet.")
    app_metadata = models.JSONField(default=dict, blank=True, help_text="For a user who does not exist yet.")
    language = models.CharField(max_length=35, blank=True, help_text="Of the mail. Empty: the first language of the tenant.")
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
            # The list of an organization, newest first.
            models.Index(fields=["organization", "created_at", "id"], name="authapi_invitation_list"),
            # The list of the admin, page by page from a key.
            models.Index(fields=["tenant", "created_at", "id"], name="authapi_invitation_listed"),
            # Links of mails.
            models.Index(fields=["tenant", "mail_digest"], name="authapi_invitation_mailed"),
            # Invitations of one address that are open.
            models.Index(fields=["organization", "email"], name="authapi_invitation_address"),
            models.Index(fields=["expires_at"], name="authapi_invitation_expired"),
        ]
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"invitation of {self.email}"

    def state_at(self, now: datetime) -> Invitation.State:
        """Return what has become of it."""
        if self.accepted_at is not None:
            return self.State.ACCEPTED
        if self.revoked_at is not None:
            return self.State.REVOKED
        return self.State.EXPIRED if self.expires_at <= now else self.State.PENDING

    def renew_ticket(self) -> None:
        """Put a new ticket in the place of the old one, which is worth nothing from then on. Saves nothing."""
        ticket = new_secret()
        self.digest, self.sealed_ticket = digest_of(ticket), vault.seal(ticket, place=self._place)

    @property
    def ticket(self) -> str:
        """The ticket in clear; empty once it is of no use."""
        return vault.unseal(self.sealed_ticket, place=self._place) if self.sealed_ticket else ""

    @property
    def _place(self) -> str:
        return f"{self.tenant_id}:invitation:{self.pk}:ticket"
